# T14, T23: what a claim's status shows confirms what was decided and never places it; outcomes of older decisions say nothing.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=2 cpu=8
settings paused=true
claim mine l40s=1
  claim mine waits: Paused
shown mine n2
show mine n2
  mine is pending: Paused
  n2 has free: cpu 8000, nvidia.com/L40S 2
settings paused=false
  puts claim mine on n1: Ordered
show mine n1 n2
  mine is on n1
  n1 has free: cpu 8000, nvidia.com/L40S 0
  n2 has free: cpu 8000, nvidia.com/L40S 2
confirm mine 0 older
  not confirmed
confirm mine 422
  not confirmed
confirm mine 0
  confirmed
