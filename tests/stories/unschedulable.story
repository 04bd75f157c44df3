# C17: a pinned launcher that kube-scheduler can't place for two minutes is given up; its units go with the pod.
class l40s
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod
unschedulable vm1-pod
pass 119
# Found and lost again: the two minutes begin anew.
unschedulable vm1-pod no
unschedulable vm1-pod
pass 119
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 3
pass 1
  skips n1 for vm1, NotScheduled: vm1-pod goes
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 3
# The pod is still there: it is told to go once more.
pass 120
  skips n1 for vm1, NotScheduled: vm1-pod goes
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
# One that finds its node in time stays.
pin vm1-pod2
unschedulable vm1-pod2
pass 100
pin vm1-pod2 n2
pass 100
show vm1
  vm1 is on n2, pinned
