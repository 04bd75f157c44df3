# C33: raw GPU pods use what they request in effect; one that has ended uses nothing.
class l40s
node n1 l40s=8 cpu=64
raw r1 n1 l40s=2
raw r2 n1 l40s=3
raw r3 n1 l40s=2
raw r4 n1 l40s=5
end r4
show n1
  n1 has free: cpu 64000, nvidia.com/L40S 1
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  vm1 waits: NoRoom
end r1
  places vm1 on n1 for vm1-pod
