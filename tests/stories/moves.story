# C40: allocatable falls below what is used: exactly one of two stopped sets moves, and nobody else gets its units.
class l40s
node n1 l40s=8 cpu=16
claim s1 l40s=2 created=1
  puts claim s1 on n1: Ordered
vm vm1 uses=s1
claim s2 l40s=2 created=2
  puts claim s2 on n1: Ordered
vm vm2 uses=s2
claim s3 l40s=4 created=3
  puts claim s3 on n1: Ordered
vm vm3 uses=s3
start vm3 uses=s3
  opens vm3: l40s x4 by nvidia.com/L40S
  places vm3 on n1 for vm3-pod
pin vm3-pod n1
run vm3-pod
phase vm3 Running
node n2 l40s=2 cpu=16
show n1 n2
  n1 has free: cpu 15000, nvidia.com/L40S 0
  n2 has free: cpu 16000, nvidia.com/L40S 2
node n1 l40s=6 cpu=16
show troubles
  n1: short:nvidia.com/L40S=2
pass 299
pass 1
  puts claim s2 on n2: Moved
show n1 n2 s1 s2 s3
  n1 has free: cpu 15000, nvidia.com/L40S 0
  n2 has free: cpu 16000, nvidia.com/L40S 0
  s1 is on n1
  s2 is on n2
  s3 is on n1, of vm3
pass 600
node n1 l40s=6 cpu=16 label=edited:yes
start vm4 l40s=2
  opens vm4: l40s x2 by nvidia.com/L40S
  vm4 waits: NoRoom
show n1 n2
  n1 has free: cpu 15000, nvidia.com/L40S 0
  n2 has free: cpu 16000, nvidia.com/L40S 0
# Then nothing takes the other one: it goes Lost, and is rebound once there is room.
node n1 l40s=4 cpu=16
pass 300
  loses claim s1 on n1: UnitsGone
  claim s1 waits: NoRoom
show n1 s1
  n1 has free: cpu 15000, nvidia.com/L40S 0
  s1 is lost, UnitsGone: NoRoom
pass 600
  keeps n1 for vm4
node n1 l40s=5 cpu=16
node n1 l40s=6 cpu=16
  places vm4 on n1 for vm4-pod
  keeps no node for vm4
