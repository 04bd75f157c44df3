# B2: what KubeVirt makes counts within its owner; what the owner's template does not show is asked for.
class l40s
node n1 l40s=8 cpu=64
budget b l40s=3
may vm vm1 l40s=2
  may be
may vmi vm1 l40s=2 of=vm1 own
  may be
declared
  total 2, held 0
  l40s 2, held 0
# Its next run comes while the one before is still seen: it takes its place.
may vmi vm1 l40s=2 of=vm1 own uid=vm1-again
  may be
# An instancetype adds the annotation: this VM declares nothing, and its VMI more than is left.
may vm vm2
  may be
may vmi vm2 l40s=2 of=vm2 own
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 3, 2 are declared, 2 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
may vmi vm2 l40s=1 of=vm2 own
  may be
declared
  total 3, held 0
  l40s 3, held 0
# A budget that was lowered refuses no start of what was declared before.
budget b l40s=1
may vmi vm1 l40s=2 of=vm1 own uid=vm1-once-more
  may be
# Whoever else names that owner gets nothing in its place.
may vmi vm3 l40s=2 of=vm1
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 1, 3 are declared, 2 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
