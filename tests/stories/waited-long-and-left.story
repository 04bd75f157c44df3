# C55, D6: what was kept for a VM that is stopped, or a node that can't take it any more, is there for others at once.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
start a1 l40s=1
  opens a1: l40s x1 by nvidia.com/L40S
  places a1 on n1 for a1-pod
start a2 l40s=1
  opens a2: l40s x1 by nvidia.com/L40S
  places a2 on n1 for a2-pod
start b1 l40s=2
  opens b1: l40s x2 by nvidia.com/L40S
  places b1 on n2 for b1-pod
start big l40s=2
  opens big: l40s x2 by nvidia.com/L40S
  big waits: NoRoom
tick 5
start big2 l40s=2
  opens big2: l40s x2 by nvidia.com/L40S
  big2 waits: NoRoom
pass 620
  keeps n1 for big
end a1-pod
  releases a1 from n1: LauncherEnded
start small l40s=1
  opens small: l40s x1 by nvidia.com/L40S
  small waits: NodeKeptForAnother
# Cordoned: it can't be placed there any more, and the other node is kept.
node n1 l40s=2 cpu=8 cordoned
  keeps no node for big
  keeps n2 for big
  small waits: NoRoom
node n1 l40s=2 cpu=8
  places small on n1 for small-pod
# Stopped: the next in line has waited long enough too.
gone vmi big
  closes big
  keeps no node for big
  keeps n1 for big2
# Paused, nothing is kept; then it is again, before anybody behind is served.
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
  keeps no node for big2
  big2 waits: Paused
start small2 l40s=1
  opens small2: l40s x1 by nvidia.com/L40S
  small2 waits: Paused
command resume
  does resume: placing goes on
  keeps n1 for big2
  big2 waits: NoRoom
  small2 waits: NoRoom
# Nobody is left.
gone vmi big2
  closes big2
  keeps no node for big2
