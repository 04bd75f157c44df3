# C61, D12, T11: KubeVirt's CRDs come late, or go away: orders are bound without them, what a VMI holds stays as it was.
cold
relist node
relist pod
relist pv
relist pvc
relist namespaces
relist class
relist claim
relist configmaps
relist gpubudgets
open helmreleases
unserved helmreleases
class l40s
node n1 l40s=1 cpu=8
claim mine l40s=1
# Kinds that nobody heard of yet may tell of anything.
show placing
  places: no
unserved kubevirts
open kubevirts
unserved kubevirts
open vm
unserved vm
open vmi
unserved vmi
  puts claim mine on n1: Ordered
show placing mine
  places: no
  mine is on n1
claim more l40s=1
  claim more waits: NoRoom
show left
  left to look at: nothing
node n2 l40s=1 cpu=8
  puts claim more on n2: Ordered
# The kinds are served, one after the other: until the last is listed no launcher is let go.
relist kubevirts
relist vm
vm vm1 uses=mine
open vmi
claim late l40s=1
relist vmi
  claim late waits: NoRoom
start vm1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
show placing mine more late
  places: yes
  mine is on n1, of vm1
  more is on n2
  late is pending: NoRoom
# They go away: what is known of VMs stays, and what a VMI holds stays on its node, whatever becomes of that.
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
unserved vmi
unserved vm
unserved kubevirts
node n1 l40s=0 cpu=8
node n3 l40s=2 cpu=8
  puts claim late on n3: Ordered
gone node n2
pass 400
  puts claim more on n3: Moved
show placing mine more late vm1 vm2
  places: no
  mine is on n1, of vm1
  more is on n3
  late is on n3
  vm1 is on n1, pinned
  vm2 waits: NoRoom
command move mine
  refuses move: KubeVirt's kinds are not served: nothing of a VM can be changed before its CRDs are installed
command move vm1
  refuses move: KubeVirt's kinds are not served: nothing of a VM can be changed before its CRDs are installed
command move late n3
  refuses move: claim t/late is on node n3 already
# A new leader binds no order before it is told anew that they are not served.
epoch
claim new l40s=1
node n4 l40s=1 cpu=8
relist node
relist pod
relist pv
relist pvc
relist namespaces
relist class
relist claim
relist configmaps
relist gpubudgets
open helmreleases
unserved helmreleases
unserved kubevirts
unserved vm
unserved vmi
  puts claim new on n4: Ordered
restart
# After the reinstall everything is looked at that was left alone meanwhile.
relist kubevirts
relist vm
node n5 l40s=2 cpu=8
relist vmi
  places vm2 on n5 for vm2-pod
show placing mine vm1 vm2
  places: yes
  mine is on n1, of vm1
  vm1 is on n1, pinned
  vm2 is on n5
