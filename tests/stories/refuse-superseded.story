# T18: a newer request for the same VM takes over what an older one booked for a VMI that was never seen.
class l40s
node n1 l40s=1 cpu=8
ask vm1 l40s=1 uid=first
  books vm1 (first) on n1 for a1: l40s x1 by nvidia.com/L40S
ask vm1 l40s=1 uid=second
  releases vm1 (first) from n1: SupersededByNewerRequest
  closes vm1 (first)
  books vm1 (second) on n1 for a2: l40s x1 by nvidia.com/L40S
store vm1 l40s=1 uid=second
  opens vm1 (second): l40s x1 by nvidia.com/L40S
launch vm1-pod of vm1
  admits the launcher of vm1 (second) as a3, pinned to n1
pin vm1-pod n1
list vm1 vm1-pod
ask vm1 l40s=1 uid=third
  vm1 (third) is not decided yet: FormerRunNotOver
end vm1-pod
  releases vm1 (second) from n1: LauncherEnded
gone vmi vm1
  closes vm1 (second)
  books vm1 (third) on n1 for a4: l40s x1 by nvidia.com/L40S
