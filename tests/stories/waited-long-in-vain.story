# C55, D6: a node is kept for nobody who can't use it, and another one instead where that comes nearer.
class l40s
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
start a1 l40s=3
  opens a1: l40s x3 by nvidia.com/L40S
  places a1 on n1 for a1-pod
start b1 l40s=2
  opens b1: l40s x2 by nvidia.com/L40S
  places b1 on n2 for b1-pod
start b2 l40s=2
  opens b2: l40s x2 by nvidia.com/L40S
  places b2 on n2 for b2-pod
# No node has 99 cores: nothing is kept for the first in line, but for the next, who has waited as long.
start never l40s=3 cpu=99
  opens never: l40s x3 by nvidia.com/L40S
  never waits: NoRoom
tick 5
start big l40s=4
  opens big: l40s x4 by nvidia.com/L40S
  big waits: NoRoom
pass 640
  keeps n1 for big
start small1 l40s=1
  opens small1: l40s x1 by nvidia.com/L40S
  small1 waits: NodeKeptForAnother
gone vmi small1
  closes small1
# The choice is reviewed every ten minutes; until then everyone takes from the other nodes, also the nearer one.
end b1-pod
  releases b1 from n2: LauncherEnded
pass 540
start small2 l40s=1
  opens small2: l40s x1 by nvidia.com/L40S
  places small2 on n2 for small2-pod
end small2-pod
  releases small2 from n2: LauncherEnded
pass 60
  keeps n2 for big
start small3 l40s=1
  opens small3: l40s x1 by nvidia.com/L40S
  places small3 on n1 for small3-pod
start small4 l40s=1
  opens small4: l40s x1 by nvidia.com/L40S
  small4 waits: NodeKeptForAnother
end b2-pod
  releases b2 from n2: LauncherEnded
  places big on n2 for big-pod
  keeps no node for big
  small4 waits: NoRoom
