# C54, C45, T24: two classes with one resource share its units; a claim is counted by the resource it was placed under.
class old resource=nvidia.com/GPU
class new resource=nvidia.com/GPU
node n1 nvidia.com/GPU=2 nvidia.com/OTHER=2 cpu=8
claim s old=2
  puts claim s on n1: Ordered
claim t new=1
  claim t waits: NoRoom
start vm1 new=1
  opens vm1: new x1 by nvidia.com/GPU
  vm1 waits: NoRoom
show n1
  n1 has free: cpu 8000, nvidia.com/GPU 0, nvidia.com/OTHER 2
# The edit of a class frees nothing, and what waits asks for the resource of now.
class old resource=nvidia.com/OTHER
class new resource=nvidia.com/OTHER
  puts claim t on n1: Ordered
show n1 s t
  n1 has free: cpu 8000, nvidia.com/GPU 0, nvidia.com/OTHER 1
  s is on n1
  t is on n1
start vm2 uses=s
  opens vm2: old x2 by nvidia.com/GPU
  places vm2 on n1 for vm2-pod
show s n1
  s is on n1, of vm2
  n1 has free: cpu 7000, nvidia.com/GPU 0, nvidia.com/OTHER 1
# A claim whose class does not exist waits; with the class it is bound.
claim g ghost=1
  claim g waits: ClassNotFound
class ghost resource=nvidia.com/OTHER
  puts claim g on n1: Ordered
gone class ghost
show g n1
  g is on n1
  n1 has free: cpu 7000, nvidia.com/GPU 0, nvidia.com/OTHER 0
# A launcher is made for the resource of its time; its set keeps to that, also where a claim of it was never placed.
class later resource=nvidia.com/GPU
claim f later=1
  claim f waits: NoRoom
vm vm3 uses=f
start vm3 uses=f
  opens vm3: later x1 by nvidia.com/GPU
  vm3 waits: NoRoom
class later resource=nvidia.com/NEWER
gone pod vm2-pod
  releases vm2 from n1: LauncherGone
gone vmi vm2
  closes vm2
gone claim s
  places vm1 on n1 for vm1-pod
  places vm3 on n1 for vm3-pod
show f vm3
  f is on n1, of vm3
  vm3 is on n1
