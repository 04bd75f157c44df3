# C55, D6: small sets don't starve a big one: after ten minutes the nearest node is kept for the first in line.
class l40s
node n1 l40s=4 cpu=64
node n2 l40s=4 cpu=64
start a1 l40s=2
  opens a1: l40s x2 by nvidia.com/L40S
  places a1 on n1 for a1-pod
start a2 l40s=2
  opens a2: l40s x2 by nvidia.com/L40S
  places a2 on n1 for a2-pod
start b1 l40s=1
  opens b1: l40s x1 by nvidia.com/L40S
  places b1 on n2 for b1-pod
start b2 l40s=3
  opens b2: l40s x3 by nvidia.com/L40S
  places b2 on n2 for b2-pod
pin b2-pod n2
start big l40s=4
  opens big: l40s x4 by nvidia.com/L40S
  big waits: NoRoom
# Until then nobody waits for it: who fits is placed, as ever.
pass 300
end a1-pod
  releases a1 from n1: LauncherEnded
start small1 l40s=1
  opens small1: l40s x1 by nvidia.com/L40S
  places small1 on n1 for small1-pod
pass 300
  keeps n1 for big
# What becomes free on its node nobody behind takes; who is ahead by priority does.
start small2 l40s=1
  opens small2: l40s x1 by nvidia.com/L40S
  small2 waits: NodeKeptForAnother
start urgent l40s=1 priority=10
  opens urgent: l40s x1 by nvidia.com/L40S
  places urgent on n1 for urgent-pod
  small2 waits: NoRoom
pin urgent-pod n1
end urgent-pod
  releases urgent from n1: LauncherEnded
  small2 waits: NodeKeptForAnother
# What stands on other nodes is for everyone.
end b1-pod
  releases b1 from n2: LauncherEnded
  places small2 on n2 for small2-pod
start small3 l40s=1
  opens small3: l40s x1 by nvidia.com/L40S
  small3 waits: NodeKeptForAnother
show n1 n2
  n1 has free: cpu 62000, nvidia.com/L40S 1
  n2 has free: cpu 62000, nvidia.com/L40S 0
# What is kept outlives a restart.
restart
epoch
progress
end small1-pod
  releases small1 from n1: LauncherEnded
end a2-pod
  releases a2 from n1: LauncherEnded
  places big on n1 for big-pod
  keeps no node for big
  small3 waits: NoRoom
# Placed, nothing is kept any more; nobody else has waited for ten minutes.
start small4 l40s=1
  opens small4: l40s x1 by nvidia.com/L40S
  small4 waits: NoRoom
pin big-pod n1
end b2-pod
  releases b2 from n2: LauncherEnded
  places small3 on n2 for small3-pod
  places small4 on n2 for small4-pod
