# C35, D8: a launcher whose containers were started may run its VM, though KubeVirt has not said so yet.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
phase vm1 Scheduled
run vm1-pod
gone node n1
node n2 l40s=1 cpu=8
pass 600
show vm1
  vm1 is on n1, pinned
# Its pod is collected with the node: then it may be started elsewhere.
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
# A pod that is going already is waited for.
pin vm1-pod2 n2
terminate vm1-pod2
gone node n2
pass 600
show vm1
  vm1 is on n2, pinned
gone pod vm1-pod2
  releases vm1 (u2) from n2: LauncherGone
gone vmi vm1
  closes vm1 (u2)
