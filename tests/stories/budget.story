# B3, C28: a set that finds its budget used up waits for it, and is woken by what frees it.
class l40s
class h100
node n1 l40s=8 h100=8 cpu=64
budget b l40s=3 total=4
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  vm2 waits: OverBudget, b allows 3 l40s, 2 are held, 2 asked
start vm3 h100=1
  opens vm3: h100 x1 by nvidia.com/H100
  places vm3 on n1 for vm3-pod
# Two of all classes would be one too many, whatever their class.
start vm4 h100=2
  opens vm4: h100 x2 by nvidia.com/H100
  vm4 waits: OverBudget, b allows 4 gpus.cozystack.io, 3 are held, 2 asked
# What frees nothing of it, or gives too little, tells nobody anything.
node n2 l40s=8 h100=8 cpu=64
budget b l40s=3 total=4 h100=9
# Another limit is another reason, and so is another budget.
budget b l40s=2 total=4
  vm2 waits: OverBudget, b allows 2 l40s, 2 are held, 2 asked
budget a total=3
  vm4 waits: OverBudget, a allows 3 gpus.cozystack.io, 3 are held, 2 asked
gone budget a
  vm4 waits: OverBudget, b allows 4 gpus.cozystack.io, 3 are held, 2 asked
# Raised, it lets in who fits, in the order of the queue.
budget b l40s=4 total=6
  places vm2 on n1 for vm2-pod
  vm4 waits: OverBudget, b allows 6 gpus.cozystack.io, 5 are held, 2 asked
show vm4
  vm4 waits: OverBudget
end vm1-pod
  releases vm1 from n1: LauncherEnded
  places vm4 on n1 for vm4-pod
restart
gone pod vm3-pod
  releases vm3 from n1: LauncherGone
gone vmi vm3
  closes vm3
