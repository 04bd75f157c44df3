# D5: paused, nothing is placed and everyone is told so; what is booked stays.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
settings paused=true
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: Paused
end vm1-pod
  releases vm1 from n1: LauncherEnded
settings paused=false
  places vm2 on n1 for vm2-pod
