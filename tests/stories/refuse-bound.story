# T5, A12: a start that its own input does not come to is told so, and is decided by the next one.
class l40s
node n1 l40s=2 cpu=400
crowd 130 l40s=3
  64 SetOpened
  64 SetWaits
ask vm1 l40s=1 counted
  64 SetOpened
  64 SetWaits
  1 StartHeld
continue
  1 SetBooked
  2 SetOpened
  2 SetWaits
show n1
  n1 has free: cpu 400000, nvidia.com/L40S 1
