# C44: a node that comes back under its name is another machine: no skip of the old one, Lost sets before new orders.
class l40s
class big resource=l40s
# Somebody else is ready.
node spare l40s=1 cpu=8 cordoned
node n1 l40s=3 cpu=8
claim g l40s=2
  puts claim g on n1: Ordered
start vm8 l40s=1
  opens vm8: l40s x1 by nvidia.com/L40S
  places vm8 on n1 for vm8-pod
pin vm8-pod n1
fail vm8-pod OutOfcpu
  skips n1 for vm8, NodeRefused: vm8-pod goes
  releases vm8 from n1: NodeRefused
gone pod vm8-pod
gone vmi vm8
  closes vm8
start vm8 l40s=1 uid=u8 pod=vm8-pod2
  opens vm8 (u8): l40s x1 by nvidia.com/L40S
  vm8 (u8) waits: NodeSkipped
gone node n1
  vm8 (u8) waits: NodeNotReady
claim order9 l40s=1
  claim order9 waits: NodeNotReady
show troubles
  n1: gone
pass 59
show g
  g is on n1
pass 1
  loses claim g on n1: NodeGone
  claim g waits: NoNodeOffersClass
show g troubles
  g is lost, NodeGone: NoNodeOffersClass
  no node is in trouble
pass 120
# The new machine has room for the one that waits, and for what went Lost.
node n1 l40s=3 cpu=8 uid=N-new
  places vm8 (u8) on n1 for vm8-pod2
  puts claim g on n1: Rebound
  claim order9 waits: NoRoom
show n1 g order9
  n1 has free: cpu 7000, nvidia.com/L40S 0
  g is on n1
  order9 is pending: NoRoom
# One that comes back at once has lost nothing, and begins anew.
gone node n1
  claim order9 waits: NodeNotReady
pass 59
node n1 l40s=3 cpu=8 uid=N-newer unready
pass 299
show g troubles
  g is on n1
  n1: not-ready:nvidia.com/L40S
node n1 l40s=3 cpu=8 uid=N-newest unready
pass 299
node n1 l40s=3 cpu=8 uid=N-newest
  claim order9 waits: NoRoom
pass 600
show g troubles
  g is on n1
  no node is in trouble
