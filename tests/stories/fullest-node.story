# D6, C55: the fullest node with room is taken, by free units over the set's resources, then by name.
class l40s
class h100
node n1 l40s=4 h100=4 cpu=64
node n2 l40s=2 h100=4 cpu=64
node n3 l40s=3 h100=1 cpu=64
start one l40s=1
  opens one: l40s x1 by nvidia.com/L40S
  places one on n2 for one-pod
start two l40s=1
  opens two: l40s x1 by nvidia.com/L40S
  places two on n2 for two-pod
start both l40s=1 h100=1
  opens both: l40s x1 by nvidia.com/L40S, h100 x1 by nvidia.com/H100
  places both on n3 for both-pod
start many l40s=3
  opens many: l40s x3 by nvidia.com/L40S
  places many on n1 for many-pod
node m1 l40s=1 cpu=64
node m0 l40s=1 cpu=64
start tie l40s=1
  opens tie: l40s x1 by nvidia.com/L40S
  places tie on m0 for tie-pod
