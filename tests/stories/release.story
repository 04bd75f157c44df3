# D2, C35: units are free when the launcher is gone or terminal, never on the VMI's phase alone.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
phase vm1 Failed
gone vmi vm1
show n1 vm2
  n1 has free: cpu 7000, nvidia.com/L40S 0
  vm2 waits: NoRoom
end vm1-pod
  releases vm1 from n1: LauncherEnded
  closes vm1
  places vm2 on n1 for vm2-pod
pin vm2-pod n1
gone pod vm2-pod
  releases vm2 from n1: LauncherGone
gone vmi vm2
  closes vm2
