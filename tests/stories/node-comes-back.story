# C44: a node that is removed and registered again under its name gives its units again, less those still held.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
gone node n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoNodeOffersClass
node n1 l40s=2 cpu=8
  places vm2 on n1 for vm2-pod
show n1
  n1 has free: cpu 6000, nvidia.com/L40S 0
