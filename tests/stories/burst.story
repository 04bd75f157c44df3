# C21, D2: a burst of starts never gives a unit twice, however late the watch is.
class l40s
node n1 l40s=4 cpu=64
node n2 l40s=4 cpu=64
crowd 50 l40s=1
  50 SetOpened
  8 SetPlaced
  42 SetWaits
show n1 n2
  n1 has free: cpu 60000, nvidia.com/L40S 0
  n2 has free: cpu 60000, nvidia.com/L40S 0
start late l40s=1
  opens late: l40s x1 by nvidia.com/L40S
  late waits: NoRoom
# A pod ends before its pin was even seen: one unit, for the one that waits longest.
end crowd000-pod
  releases crowd000 from n1: LauncherEnded
  places crowd008 on n1 for crowd008-pod
gone vmi crowd001
gone pod crowd001-pod
  releases crowd001 from n1: LauncherGone
  closes crowd001
  places crowd009 on n1 for crowd009-pod
show n1 n2
  n1 has free: cpu 60000, nvidia.com/L40S 0
  n2 has free: cpu 60000, nvidia.com/L40S 0
