# C59, D5: a reason that changes is told, the one of the node that came nearest.
class l40s
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  vm1 waits: NoNodeOffersClass
node n1 l40s=1 cpu=8
node n1 l40s=2 cpu=8 unready
  vm1 waits: NodeNotReady
node n1 l40s=2 cpu=8 taint=gpu=own:NoSchedule
  vm1 waits: TaintNotTolerated
raw other n1 l40s=1
raw big n1 cpu=8
class l40s tolerates=gpu
  vm1 waits: NoRoom
gone pod other
  vm1 waits: NoRoomForOtherResources
# Another takes a unit: n1 is full now, it does not only lack cores.
start small l40s=1 cpu=0
  opens small: l40s x1 by nvidia.com/L40S
  places small on n1 for small-pod
  vm1 waits: NoRoom
end small-pod
  releases small from n1: LauncherEnded
  vm1 waits: NoRoomForOtherResources
gone pod big
  places vm1 on n1 for vm1-pod
gone node n1
