# C40, D8: where units are missing, claims that no launcher needs leave before any VM loses its place.
class l40s
node n1 l40s=4 cpu=8
claim one l40s=1
  puts claim one on n1: Ordered
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
node n2 l40s=1 cpu=8
node n1 l40s=3 cpu=8
pass 300
  puts claim one on n2: Moved
show n1 n2 vm1 vm2
  n1 has free: cpu 6000, nvidia.com/L40S 0
  n2 has free: cpu 8000, nvidia.com/L40S 0
  vm1 is on n1, pinned
  vm2 is on n1
# Then the booking whose launcher was not let go, then the VMI that has not started.
node n1 l40s=1 cpu=8
pass 300
  releases vm2 from n1: NodeCannotKeep
  vm2 waits: NoNodeOffersClass
node n1 cpu=8
pass 300
  gives up vm1 on n1: UnitsGone
show n1
  n1 has free: cpu 7000
# Claims whose launcher is booked go with its set.
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
gone pod vm2-pod
gone vmi vm2
  closes vm2
gone node n1
vm vm3 uses=one
start vm3 uses=one
  opens vm3: l40s x1 by nvidia.com/L40S
  places vm3 on n2 for vm3-pod
node n3 l40s=1 cpu=8
node n2 cpu=8
pass 300
  releases vm3 from n2: NodeCannotKeep
  places vm3 on n3 for vm3-pod
show one vm3
  one is on n3, of vm3
  vm3 is on n3
pin vm3-pod n3
node n3 l40s=1 cpu=8 taint=dead:NoSchedule
node n4 l40s=1 cpu=8
pass 300
  gives up vm3 on n3: NodeTainted
show one vm3
  one is on n3, of vm3
  vm3 is on n3, pinned
gone pod vm3-pod
  releases vm3 from n3: LauncherGone
  puts claim one on n4: Moved
gone vmi vm3
  closes vm3
show one
  one is on n4
