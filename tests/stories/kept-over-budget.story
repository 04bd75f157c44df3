# C55, B3: a node is kept no longer for a VM whose tenant has no units left: an order took them in the same pass.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=1 cpu=8
budget b l40s=2
raw raw1 n1 l40s=1
raw raw2 n2 l40s=1
start big l40s=2
  opens big: l40s x2 by nvidia.com/L40S
  big waits: NoRoom
pass 620
  keeps n1 for big
claim one l40s=2
  claim one waits: NoRoom
claim two l40s=1
  claim two waits: NodeKeptForAnother
gone pod raw2
  puts claim two on n2: Ordered
  keeps no node for big
show big two n1
  big waits: NoRoom
  two is on n2
  n1 has free: cpu 8000, nvidia.com/L40S 1
start small l40s=1
  opens small: l40s x1 by nvidia.com/L40S
  places small on n1 for small-pod
