# T4, T24: a pin is believed before a status and before a node is reported; a claim whose units launchers have is Lost, and
# bound elsewhere; a temporary pod and its launcher share their booking; what is no set of ours counts by its pod alone.
class l40s
class h100
node n1 l40s=2 h100=1 cpu=8
node n2 l40s=2 cpu=8
node n3 l40s=2 cpu=8
claim taken l40s=2
  puts claim taken on n1: Ordered
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
pin vm1-pod
retarget vm1-pod affinity=@metadata.name:In:n1&gpu:Exists affinity=@metadata.name:In:n1
  opens vm1: l40s x1 by nvidia.com/L40S
vmi hot l40s=1
admit hot r2
  admits the launcher of hot as r2, gated
pod hot-temp of hot stamp=r2 l40s=1 temporary
list hot hot-temp
  opens hot: l40s x1 by nvidia.com/L40S
  places hot on n2 for hot-temp
pin hot-temp n2
admit hot r3
  admits the launcher of hot as r3, gated
pod hot-pod of hot stamp=r3 l40s=1
list hot hot-temp hot-pod
  places hot on n2 for hot-pod
vmi odd l40s=1
pod odd-pod of odd stamp=r9 l40s=2
pin odd-pod n3
list odd odd-pod
shown taken n1
class l40s resource=nvidia.com/L40S-NEW
adopt
  takes over the launcher of hot: r3
  takes over hot on n2 with hot-temp: l40s x1 by nvidia.com/L40S
  takes over vm1 on n1 with vm1-pod: l40s x1 by nvidia.com/L40S
  takes over claim taken on n1
  has taken over 2 sets, 1 claims
continue
  1 SetPlaced
show vm1 hot odd taken n1 n2 n3
  vm1 is on n1, pinned
  hot is on n2
  odd has no set
  taken is on n1
  n1 has free: cpu 7000, nvidia.com/H100 1, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 1
  n3 has free: cpu 7000, nvidia.com/L40S 0
end hot-temp
gone pod hot-temp
pin hot-pod n2
show hot n2
  hot is on n2, pinned
  n2 has free: cpu 7000, nvidia.com/L40S 1
