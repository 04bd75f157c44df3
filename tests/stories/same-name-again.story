# C38, C44: a VMI that comes back under its name is another one; the old launcher's units stay taken until it is gone.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
gone vmi vm1
start vm1 l40s=1 uid=second pod=second-pod
  opens vm1 (second): l40s x1 by nvidia.com/L40S
  vm1 (second) waits: NoRoom
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 0
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
  closes vm1
  places vm1 (second) on n1 for second-pod
# Stopped and started within a minute: the same words are another decision.
end second-pod
  releases vm1 (second) from n1: LauncherEnded
gone vmi vm1
  closes vm1 (second)
gone pod second-pod
start vm1 l40s=1 uid=third pod=third-pod
  opens vm1 (third): l40s x1 by nvidia.com/L40S
  places vm1 (third) on n1 for third-pod
