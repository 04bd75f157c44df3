# T15: evidence in a request is an observation: newer than the fold's it counts, older it changes nothing.
class l40s
node n1 l40s=1 next=1 cpu=8
evidence l40s rv=1 resource=old
  admits VMI asked under Wait
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
evidence l40s rv=999 resource=next
  admits VMI asked under Wait
start vm2 l40s=1 nvidia.com/L40S=0 next=1
  opens vm2: l40s x1 by nvidia.com/NEXT
  places vm2 on n1 for vm2-pod
class h100
vmi vm3 h100=1
admit vm3 r
  admits the launcher of vm3 as r, gated
pod vm3-pod of vm3 stamp=r
gone class h100
# It was read before the class was deleted: nobody brings it back.
evidence h100 rv=9
  admits VMI asked under Wait
list vm3 vm3-pod
  vm3 waits: ClassNotFound
