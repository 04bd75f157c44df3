# C22, T11: what was deleted while the watch was down is gone after the list; its units are free.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  vm2 waits: NoRoom
lose vmi vm1
lose pod vm1-pod
relist vmi
relist pod
  releases vm1 from n1: LauncherGone
  closes vm1
  places vm2 on n1 for vm2-pod
