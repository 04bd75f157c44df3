# D5: a class that does not exist any more is the reason; the set is opened once it does.
class l40s
node n1 l40s=1 cpu=8
vmi vm1 l40s=1
admit vm1 r
  admits the launcher of vm1 as r, gated
gone class l40s
pod vm1-pod of vm1 stamp=r
list vm1 vm1-pod
  vm1 waits: ClassNotFound
class l40s
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
vmi odd annotation=nonsense
admit odd s
  refuses odd: MalformedAnnotation
pod odd-pod of odd stamp=s
list odd odd-pod
