# T24: a class edited between a start's admission and its launcher, and edited back: the set is counted by what the launcher asks for.
class l40s
node n1 l40s=1 new=1 cpu=8
vmi vm1 l40s=1
admit vm1 r1
  admits the launcher of vm1 as r1, gated
class l40s resource=new
pod vm1-pod of vm1 stamp=r1 nvidia.com/L40S=1 nvidia.com/NEW=0
list vm1 vm1-pod
  opens vm1: l40s x1 by nvidia.com/NEW
  vm1 waits: RequestsMismatch
class l40s
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
