# B2: what VMs and claims ask for on paper counts from write to deletion, whether they run or not.
class l40s
class h100
node n1 l40s=8 h100=8 cpu=64
budget b l40s=4 total=6
may vm vm1 l40s=2 h100=1
  may be
declared
  total 3, held 0
  h100 1, held 0
  l40s 2, held 0
# What it runs counts within it: the larger of the two.
start vm1 l40s=2 h100=1 of=vm1
  opens vm1: l40s x2 by nvidia.com/L40S, h100 x1 by nvidia.com/H100
  places vm1 on n1 for vm1-pod
declared
  total 3, held 3
  h100 1, held 1
  l40s 2, held 2
may vm vm2 l40s=3
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 4, 2 are declared, 3 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may vm vm2 l40s=2
  may be
may vm vm3 h100=2
  refused, OverBudget: budget of t: gpus.cozystack.io is limited to 6, 5 are declared, 2 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may vm vm3 h100=1
  may be
# A claim counts from the day it is ordered; a VM that uses it declares nothing more.
order c1 h100=1
  refused, OverBudget: budget of t: gpus.cozystack.io is limited to 6, 6 are declared, 1 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
budget b l40s=4 total=7
order c1 h100=1
  may be
claim c1 h100=1
  puts claim c1 on n1: Ordered
may vm vm4 uses=c1
  may be
declared
  total 7, held 4
  h100 3, held 2
  l40s 4, held 2
# Lowered below what is declared, it takes nothing away, and what becomes less may be.
budget b l40s=1 total=1
may vm vm2 l40s=1
  may be
may vm vm1 l40s=2 h100=1
  may be
may vm vm1 l40s=3 h100=1
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 1, 3 are declared, 1 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
gone vm vm2
gone vm vm3
declared
  total 4, held 4
  h100 2, held 2
  l40s 2, held 2
restart
declared
  total 4, held 4
  h100 2, held 2
  l40s 2, held 2
gone vm vm1
declared
  total 4, held 4
  h100 2, held 2
  l40s 2, held 2
