# C15: which failures of a pinned launcher are a refusal for lack of resources, and which are not.
class l40s
node n1 l40s=99 cpu=99
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  places vm3 on n1 for vm3-pod
start vm4 l40s=1
  opens vm4: l40s x1 by nvidia.com/L40S
  places vm4 on n1 for vm4-pod
start vm5 l40s=1
  opens vm5: l40s x1 by nvidia.com/L40S
  places vm5 on n1 for vm5-pod
start vm6 l40s=1
  opens vm6: l40s x1 by nvidia.com/L40S
  places vm6 on n1 for vm6-pod
start vm7 l40s=1
  opens vm7: l40s x1 by nvidia.com/L40S
  places vm7 on n1 for vm7-pod
start vm8 l40s=1
  opens vm8: l40s x1 by nvidia.com/L40S
  places vm8 on n1 for vm8-pod
start vm9 l40s=1
  opens vm9: l40s x1 by nvidia.com/L40S
  places vm9 on n1 for vm9-pod
start vm10 l40s=1
  opens vm10: l40s x1 by nvidia.com/L40S
  places vm10 on n1 for vm10-pod
start vm11 l40s=1
  opens vm11: l40s x1 by nvidia.com/L40S
  places vm11 on n1 for vm11-pod
start vm12 l40s=1
  opens vm12: l40s x1 by nvidia.com/L40S
  places vm12 on n1 for vm12-pod
start vm13 l40s=1
  opens vm13: l40s x1 by nvidia.com/L40S
  places vm13 on n1 for vm13-pod
pin vm13-pod n1
pin vm1-pod n1
pin vm2-pod n1
pin vm3-pod n1
pin vm4-pod n1
pin vm5-pod n1
pin vm6-pod n1
pin vm7-pod n1
pin vm8-pod n1
pin vm9-pod n1
pin vm10-pod n1
pin vm11-pod n1
fail vm1-pod OutOfnvidia.com/L40S
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
fail vm2-pod OutOfcpu
  skips n1 for vm2, NodeRefused: vm2-pod goes
  releases vm2 from n1: NodeRefused
fail vm3-pod OutOfmemory
  skips n1 for vm3, NodeRefused: vm3-pod goes
  releases vm3 from n1: NodeRefused
fail vm4-pod OutOfpods
  skips n1 for vm4, NodeRefused: vm4-pod goes
  releases vm4 from n1: NodeRefused
fail vm5-pod UnexpectedAdmissionError
  skips n1 for vm5, NodeRefused: vm5-pod goes
  releases vm5 from n1: NodeRefused
fail vm6-pod TopologyAffinityError
  skips n1 for vm6, NodeRefused: vm6-pod goes
  releases vm6 from n1: NodeRefused
# The rest is KubeVirt's to handle.
fail vm7-pod NodeAffinity
  releases vm7 from n1: LauncherEnded
fail vm8-pod NodeShutdown
  releases vm8 from n1: LauncherEnded
fail vm9-pod Evicted
  releases vm9 from n1: LauncherEnded
fail vm10-pod Error
  releases vm10 from n1: LauncherEnded
fail vm13-pod ''
  releases vm13 from n1: LauncherEnded
# One that shows a container which was started was taken, whatever it died of.
fail vm11-pod OutOfmemory ran
  releases vm11 from n1: LauncherEnded
# One that is not pinned was refused by nobody.
fail vm12-pod OutOfcpu
  releases vm12 from n1: LauncherEnded
