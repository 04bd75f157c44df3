# D6, T10: at the same first wait the name decides, not who came last.
settings paused=true
class l40s
node n1 l40s=1 cpu=64
start b l40s=1
  opens b: l40s x1 by nvidia.com/L40S
  b waits: Paused
start a l40s=1
  opens a: l40s x1 by nvidia.com/L40S
  a waits: Paused
settings paused=false
  places a on n1 for a-pod
  b waits: NoRoom
