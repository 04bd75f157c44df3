# C45: a resource key that is gone is zero units free; what was booked is counted under the name it was booked with.
class l40s
class l40s-48c resource=L40S-48C
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
claim g l40s=1
  puts claim g on n1: Ordered
show n1 g
  n1 has free: cpu 7000, nvidia.com/L40S 0
  g is on n1
node n1 L40S-48C=4 cpu=8
show troubles
  n1: short:nvidia.com/L40S=2
start vm2 l40s-48c=4
  opens vm2: l40s-48c x4 by nvidia.com/L40S-48C
  places vm2 on n1 for vm2-pod
pass 300
  loses claim g on n1: UnitsGone
  claim g waits: NoNodeOffersClass
# vm1 runs on: its unit is still counted.
show n1 g vm1 troubles
  n1 has free: cpu 6000, nvidia.com/L40S-48C 0
  g is lost, UnitsGone: NoNodeOffersClass
  vm1 is on n1, pinned
  n1: short:nvidia.com/L40S=1
class l40s resource=other
show n1 g vm1 troubles
  n1 has free: cpu 6000, nvidia.com/L40S-48C 0
  g is lost, UnitsGone: NoNodeOffersClass
  vm1 is on n1, pinned
  n1: short:nvidia.com/L40S=1
pass 600
node n1 l40s=2 cpu=8
  puts claim g on n1: Rebound
show n1 g vm1
  n1 has free: cpu 6000, nvidia.com/L40S 0
  g is on n1
  vm1 is on n1, pinned
