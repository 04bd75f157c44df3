# D9: an operator moves and releases bookings by commands; what runs is never touched by one.
class l40s
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
node n3 l40s=4 cpu=8
node n4 l40s=1 cpu=8 cordoned
claim one l40s=1
  puts claim one on n1: Ordered
claim two l40s=1
  puts claim two on n1: Ordered
vm vm1 uses=one uses=two
show one two
  one is on n1
  two is on n1
# A held claim goes with its group: to the fullest other node, or to one that is named.
raw raw n3 l40s=1
command move one
  does move: claim t/one, t/two moved to node n3 from node n1
  puts claim one, two on n3: Moved
command move two n1
  does move: claim t/one, t/two moved to node n1 from node n3
  puts claim one, two on n1: Moved
command move two n1
  refuses move: claim t/one, t/two is on node n1 already
command move two n4
  refuses move: node n4 does not take claim t/one, t/two: NoNodeOffersClass
command move two n9
  refuses move: there is no node n9
command move nobody
  refuses move: t/nobody: no held claim and no VM with a GPU reference has this name
# Released, a claim is bound anew after a while only.
command release one
  does release: claim t/one, t/two left node n1, and is bound anew in 600 seconds at the earliest
  loses claim one, two on n1: Commanded
  claim one, two waits: ReleasedByOperator
show one two
  one is lost, Commanded: ReleasedByOperator
  two is lost, Commanded: ReleasedByOperator
command release one
  refuses release: claim t/one, t/two: no units are held
pass 599
restart
pass 1
  puts claim one, two on n3: Rebound
show one two
  one is on n3
  two is on n3
command move one n2
  does move: claim t/one, t/two moved to node n2 from node n3
  puts claim one, two on n2: Moved
# Beside a VM that waits or is started, the set of the VM is meant.
raw raw1 n1 l40s=1
raw raw2 n2 l40s=1
start vm1 uses=one uses=two l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  vm1 waits: NoRoom
command move one n1
  refuses move: VM t/vm1 waits and has no booking (NoRoom): `gpubinder explain` says why
command release vm1
  refuses release: VM t/vm1 waits and has no booking (NoRoom): `gpubinder explain` says why
raw raw1 n1
  places vm1 on n1 for vm1-pod
show vm1 one two
  vm1 is on n1
  one is on n1, of vm1
  two is on n1, of vm1
command move vm1
  refuses move: VM t/vm1 is being pinned to node n1: give the command again in a moment, or release it
command move vm1 n1
  refuses move: VM t/vm1 is being pinned to node n1: give the command again in a moment, or release it
command release two
  does release: VM t/vm1 left node n1, and is gathered anew
  releases vm1 from n1: Commanded
  places vm1 on n1 for vm1-pod
# Pinned and not running, it is given up, and goes elsewhere.
pin vm1-pod
command move vm1 n3
  refuses move: VM t/vm1 is pinned to node n1: it can be started anew on another, but which can't be named
command move one
  does move: VM t/vm1 had not started on node n1: it is started anew, and skips the node for 600 seconds
  gives up vm1 on n1: Commanded
show vm1
  vm1 is on n1, pinned
command move one
  refuses move: VM t/vm1 was given up on node n1 already, and is started anew
phase vm1 Pending deleting
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
raw raw2 n2
start vm1 uses=one uses=two l40s=2 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x2 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
show one two
  one is on n2, of vm1
  two is on n2, of vm1
# What runs is left alone, also where no booking is known of it.
pin vm1-pod2 n2
run vm1-pod2
phase vm1 Running
command move vm1
  refuses move: the launcher of VM t/vm1 runs on node n2, or may run: stop or restart the VM
command release two
  refuses release: the launcher of VM t/vm1 runs on node n2, or may run: stop or restart the VM
command move vm2
  refuses move: t/vm2: no held claim and no VM with a GPU reference has this name
vm vm2 l40s=1
command release vm2
  refuses release: VM t/vm2 is stopped: name its claims
claim three l40s=1
  puts claim three on n3: Ordered
start vm3 uses=three l40s=4
  opens vm3: l40s x4 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  vm3 waits: NoNodeOffersClass
# One that KubeVirt does not list is no booking of ours, and may run all the same.
list vm3
pin vm3-pod n3
command move three
  refuses move: a launcher that uses claim t/three runs, or may run: stop the VM
node n3 l40s=4 cpu=8 unready
pass 600
show three
  three is on n3, of vm3
end vm3-pod
  puts claim three on n1: Moved
pass 20
show three
  three is on n1, of vm3
# Nothing is moved on a picture that may be old.
epoch
command release two
  refuses release: the picture of the cluster is not complete yet: give the command again in a moment
