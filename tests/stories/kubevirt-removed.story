# C61, C35: where KubeVirt was removed nobody sees VMIs go: a booking ends with its pod, and not before.
class l40s
node n1 l40s=2 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
start vm1 l40s=1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
unserved kubevirts
unserved vm
unserved vmi
show vm1 n1
  vm1 is on n1, pinned
  n1 has free: cpu 7000, nvidia.com/L40S 0
claim mine l40s=1 deleting
terminate vm1-pod
show vm1 mine n1
  vm1 is on n1, pinned
  mine is on n1, of vm1
  n1 has free: cpu 7000, nvidia.com/L40S 0
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
  frees claim mine (uid-mine)
show vm1 mine n1 left
  vm1 waits: None
  mine is freed
  n1 has free: cpu 8000, nvidia.com/L40S 2
  left to look at: something
claim next l40s=2
  puts claim next on n1: Ordered
# Once it is back, its VMI is gone for good.
lose vmi vm1
relist kubevirts
relist vm
relist vmi
  closes vm1
