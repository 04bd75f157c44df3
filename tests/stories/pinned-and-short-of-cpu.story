# C17: who asks for more cores than the fullest node has left goes elsewhere; one pinned in error is given up, and starts elsewhere.
class l40s
node n1 l40s=4 cpu=32
raw busy n1 cpu=30
claim x l40s=1
  puts claim x on n1: Ordered
node n2 l40s=4 cpu=32
start vm1 l40s=2 cpu=16
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
show n1 n2
  n1 has free: cpu 2000, nvidia.com/L40S 3
  n2 has free: cpu 16000, nvidia.com/L40S 2
gone pod vm1-pod
  releases vm1 from n2: LauncherGone
gone vmi vm1
  closes vm1
# What takes the cores is not seen by us: kube-scheduler finds no place for it, and its units are not held for ever.
gone pod busy
start vm1 l40s=2 cpu=16 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x2 by nvidia.com/L40S
  places vm1 (u2) on n1 for vm1-pod2
pin vm1-pod2
tick 1
unschedulable vm1-pod2
start big l40s=4
  opens big: l40s x4 by nvidia.com/L40S
  places big on n2 for big-pod
start vm2 l40s=3
  opens vm2: l40s x3 by nvidia.com/L40S
  vm2 waits: NoRoom
pass 119
pass 1
  skips n1 for vm1 (u2), NotScheduled: vm1-pod2 goes
gone pod vm1-pod2
  releases vm1 (u2) from n1: LauncherGone
  places vm2 on n1 for vm2-pod
gone vmi vm1
  closes vm1 (u2)
start vm1 l40s=2 cpu=16 uid=u3 pod=vm1-pod3
  opens vm1 (u3): l40s x2 by nvidia.com/L40S
  vm1 (u3) waits: NoRoom
end big-pod
  releases big from n2: LauncherEnded
  places vm1 (u3) on n2 for vm1-pod3
show vm1 vm2
  vm1 is on n2
  vm2 is on n1
