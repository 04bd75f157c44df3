# B2, T20: a pool and a replica set count for all their replicas, and what they make counts within them.
class l40s
node n1 l40s=8 cpu=64
budget b l40s=6
may pool p replicas=2 l40s=2
  may be
may set s replicas=3 l40s=1
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 6, 4 are declared, 3 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may set s replicas=2 l40s=1
  may be
declared
  total 6, held 0
  l40s 6, held 0
# What a pool makes was asked about with the pool.
may vm p-0 l40s=2 of=p
  may be
may vm p-1 l40s=2 of=p
  may be
start p-0 l40s=2 of=p-0
  opens p-0: l40s x2 by nvidia.com/L40S
  places p-0 on n1 for p-0-pod
start s-x l40s=1 of=s
  opens s-x: l40s x1 by nvidia.com/L40S
  places s-x on n1 for s-x-pod
declared
  total 6, held 3
  l40s 6, held 3
# One more than it is to have, or one that was edited, is more.
may vm p-2 l40s=2 of=p
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 6, 6 are declared, 2 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may vm p-1 l40s=3 of=p
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 6, 6 are declared, 1 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may pool p replicas=3 l40s=2
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 6, 6 are declared, 2 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
# Fewer are always fewer; those that still stand count until they are gone.
may pool p replicas=1 l40s=2
  may be
declared
  total 6, held 3
  l40s 6, held 3
gone vm p-1
declared
  total 4, held 3
  l40s 4, held 3
may pool p replicas=2 l40s=2
  may be
# Without its owner each counts by itself; an owner that nobody sees is none.
gone pool p
declared
  total 4, held 3
  l40s 4, held 3
may vmi stray l40s=3 of=nobody
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 6, 4 are declared, 3 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may vmi stray l40s=2 of=nobody
  may be
declared
  total 6, held 3
  l40s 6, held 3
