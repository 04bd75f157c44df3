# T24: a class is edited between a start's admission and its launcher: the VMI's own devices say what it was admitted with.
class l40s
class h100
node n1 l40s=3 new=3 h100=1 cpu=8
vmi vm1 h100=1 l40s=1 as=nvidia.com/H100 as=nvidia.com/L40S
admit vm1 r1
  admits the launcher of vm1 as r1, gated
class l40s resource=new
pod vm1-pod of vm1 stamp=r1 nvidia.com/H100=1 nvidia.com/L40S=1 nvidia.com/NEW=0
list vm1 vm1-pod
  opens vm1: h100 x1 by nvidia.com/H100, l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
show n1
  n1 has free: cpu 7000, nvidia.com/H100 0, nvidia.com/L40S 2, nvidia.com/NEW 3
# So does a held claim that was never placed; once placed, it counts by what it was placed under.
class a resource=nvidia.com/A
claim mine a=1
  claim mine waits: NoNodeOffersClass
vmi vm2 uses=mine as=nvidia.com/A
admit vm2 r2
  admits the launcher of vm2 as r2, gated
class a resource=nvidia.com/B
pod vm2-pod of vm2 stamp=r2 nvidia.com/A=1 nvidia.com/B=0
list vm2 vm2-pod
  opens vm2: a x1 by nvidia.com/A
  vm2 waits: NoNodeOffersClass
node n2 a=1 cpu=8
  places vm2 on n2 for vm2-pod
# A pod that asks for something else still waits, and says so.
vmi vm3 l40s=1 as=nvidia.com/L40S
admit vm3 r3
  admits the launcher of vm3 as r3, gated
pod vm3-pod of vm3 stamp=r3 nvidia.com/L40S=2 nvidia.com/NEW=0
list vm3 vm3-pod
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: RequestsMismatch
