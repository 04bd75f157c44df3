# C34: allocatable is not what is free: claims, running pods without a booking and raw pods are each counted once.
class l40s
node n1 l40s=2 cpu=16
claim g1 l40s=1
  puts claim g1 on n1: Ordered
vm u1 uses=g1
start u1 uses=g1
  opens u1: l40s x1 by nvidia.com/L40S
  places u1 on n1 for u1-pod
pin u1-pod n1
run u1-pod
phase u1 Running
claim g3 l40s=1
  puts claim g3 on n1: Ordered
show n1
  n1 has free: cpu 15000, nvidia.com/L40S 0
# A pod that runs without a booking counts by itself, and its claim, which has no node, holds nothing.
claim g2 l40s=1
  claim g2 waits: NoRoom
vmi u2 uses=g2 policy=Schedule
pod u2-pod of u2 bare l40s=1
pin u2-pod n1
run u2-pod
raw raw n1 l40s=1
show n1 g2
  n1 has free: cpu 14000, nvidia.com/L40S -2
  g2 is pending: NoRoom
node n1 l40s=4 cpu=16
show n1 g1 g2 g3
  n1 has free: cpu 14000, nvidia.com/L40S 0
  g1 is on n1, of u1
  g2 is pending: NoRoom
  g3 is on n1
claim g4 l40s=1
  claim g4 waits: NoRoom
start other l40s=1
  opens other: l40s x1 by nvidia.com/L40S
  other waits: NoRoom
