# C36, D3: a set is placed whole on one node or not at all; whoever waits holds nothing.
class l40s
class h100
node n1 l40s=1 h100=1 cpu=8
node n2 l40s=1 cpu=8
node n3 h100=1 cpu=8
start vm1 l40s=1 h100=1
  opens vm1: l40s x1 by nvidia.com/L40S, h100 x1 by nvidia.com/H100
  places vm1 on n1 for vm1-pod
start vm2 l40s=1 h100=1
  opens vm2: l40s x1 by nvidia.com/L40S, h100 x1 by nvidia.com/H100
  vm2 waits: NoRoom
# vm2 reserved nothing: the unit of n2 is there for the next one.
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  places vm3 on n2 for vm3-pod
show n1 n2 n3
  n1 has free: cpu 7000, nvidia.com/H100 0, nvidia.com/L40S 0
  n2 has free: cpu 7000, nvidia.com/L40S 0
  n3 has free: cpu 8000, nvidia.com/H100 1
pin vm1-pod n1
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
  places vm2 on n1 for vm2-pod
show n1 n2 n3
  n1 has free: cpu 7000, nvidia.com/H100 0, nvidia.com/L40S 0
  n2 has free: cpu 7000, nvidia.com/L40S 0
  n3 has free: cpu 8000, nvidia.com/H100 1
