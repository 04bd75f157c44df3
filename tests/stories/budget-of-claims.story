# B3, B4: orders wait for their budget too; what is held is asked for once, and not again by the VM that uses it.
class l40s
node n1 l40s=8 cpu=64
budget b l40s=2
claim one l40s=1
  puts claim one on n1: Ordered
claim two l40s=1
  puts claim two on n1: Ordered
claim three l40s=1
  claim three waits: OverBudget, b allows 2 l40s, 2 are held, 1 asked
# A VM asks for what none of its claims hold yet.
start vm1 uses=one l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  vm1 waits: OverBudget, b allows 2 l40s, 2 are held, 1 asked
start vm2 uses=two
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
# Deleted under a budget, a claim frees its units for who is first in line.
budget b l40s=1
  vm1 waits: OverBudget, b allows 1 l40s, 2 are held, 1 asked
  claim three waits: OverBudget, b allows 1 l40s, 2 are held, 1 asked
end vm2-pod
  releases vm2 from n1: LauncherEnded
claim two l40s=1 deleting
  frees claim two (uid-two)
gone claim two
budget b l40s=3
  places vm1 on n1 for vm1-pod
  puts claim three on n1: Ordered
budget b l40s=0
gone budget b
