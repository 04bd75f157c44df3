# C16: a device plugin that shows no unit for half an hour harms nothing that runs, and its return gives no more than is free.
class l40s
node n1 l40s=8 cpu=8
start vm1 l40s=6
  opens vm1: l40s x6 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
node n1 l40s=0 cpu=8
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  vm2 waits: NoNodeOffersClass
pass 1800
show n1 vm1 vm2
  n1 has free: cpu 7000, nvidia.com/L40S -6
  vm1 is on n1, pinned
  vm2 waits: NoNodeOffersClass
node n1 l40s=8 cpu=8
  places vm2 on n1 for vm2-pod
show n1 vm1 vm2 troubles
  n1 has free: cpu 6000, nvidia.com/L40S 0
  vm1 is on n1, pinned
  vm2 is on n1
  no node is in trouble
# The key may be absent, too.
pin vm2-pod n1
run vm2-pod
phase vm2 Running
node n1 cpu=8
show troubles
  n1: short:nvidia.com/L40S=8
pass 1800
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: NoNodeOffersClass
node n1 l40s=8 cpu=8
  vm3 waits: NoRoom
show n1
  n1 has free: cpu 6000, nvidia.com/L40S 0
# A claim that nothing runs on bears a dip; of one that lasts it is lost once, and bound again once.
node n2 l40s=2 cpu=8
  places vm3 on n2 for vm3-pod
claim one l40s=1
  puts claim one on n2: Ordered
node n2 cpu=8
pass 299
node n2 l40s=2 cpu=8
pass 1
node n2 cpu=8
pass 1800
  releases vm3 from n2: NodeCannotKeep
  loses claim one on n2: UnitsGone
  vm3 waits: NoRoom
  claim one waits: NoRoom
  keeps n1 for vm3
node n2 l40s=2 cpu=8
  places vm3 on n2 for vm3-pod
  keeps no node for vm3
  puts claim one on n2: Rebound
pass 1800
show one
  one is on n2
