# C33, C17: what other pods request counts, for every resource that the launcher requests.
class l40s
node n1 l40s=2 cpu=4
node n2 l40s=4 cpu=64
raw busy n1 cpu=4
# n1 is fuller, and has no core left.
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
node n2 l40s=4 cpu=1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoomForOtherResources
show n1 n2
  n1 has free: cpu 0, nvidia.com/L40S 2
  n2 has free: cpu 0, nvidia.com/L40S 3
gone pod busy
  places vm2 on n1 for vm2-pod
