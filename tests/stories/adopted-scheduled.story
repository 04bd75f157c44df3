# T4: what kube-scheduler placed, and VMs with GPU entries of their own, are nobody's booking: they count by their pods alone.
class l40s
node n1 l40s=4 cpu=8
vmi sched l40s=1 policy=Schedule
pod sched-pod of sched stamp=s1 l40s=1 bare
list sched sched-pod
pin sched-pod n1
raw virt-launcher-plain n1 l40s=1
adopt
  has taken over 0 sets, 0 claims
continue
show sched n1
  sched has no set
  n1 has free: cpu 7000, nvidia.com/L40S 2
start vm1 l40s=3
  opens vm1: l40s x3 by nvidia.com/L40S
  vm1 waits: NoRoom
gone pod sched-pod
  places vm1 on n1 for vm1-pod
