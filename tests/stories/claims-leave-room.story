# D6, D10: claims that move with their VM make room, and who waited for it gets it in the same pass.
class l40s
node n1 l40s=2 cpu=1
node n2 l40s=3 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
show mine
  mine is on n1
start waits l40s=2 affinity=@metadata.name:In:n1
  opens waits: l40s x2 by nvidia.com/L40S
  waits waits: NoRoom
start vm1 l40s=1 uses=mine cpu=2
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
  places waits on n1 for waits-pod if @metadata.name:In:n1
show mine n1 n2
  mine is on n2, of vm1
  n1 has free: cpu 0, nvidia.com/L40S 0
  n2 has free: cpu 6000, nvidia.com/L40S 1
