# D10: of VMIs without a VM the first in line has the claim, for as long as anything of it is there.
class l40s
node n1 l40s=4 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
start one uses=mine
  opens one: l40s x1 by nvidia.com/L40S
  places one on n1 for one-pod
start two uses=mine
  two waits: ClaimInUse
pin one-pod n1
phase one Succeeded
end one-pod
  releases one from n1: LauncherEnded
gone pod one-pod
gone vmi one
  closes one
  opens two: l40s x1 by nvidia.com/L40S
  places two on n1 for two-pod
show mine
  mine is on n1, of two
