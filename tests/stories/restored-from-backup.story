# T12: what an API server that came back from a backup does not show any more is said again: claims that are gone; a
# launcher that stands behind our gate again has its set gathered anew, since others may be back on its node.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1
pin vm1-pod n1
show vm1
  vm1 is on n1, pinned
open pod rewound
pod vm1-pod of vm1 stamp=r1
raw old n1 l40s=1
list-until pod 3
  releases vm1 from n1: PinRefused
  vm1 waits: WriteRefused
show vm1 n1
  vm1 waits: WriteRefused
  n1 has free: cpu 8000, nvidia.com/L40S 1
tick 3
  places vm1 on n2 for vm1-pod
pin vm1-pod n2
show vm1 n1 n2
  vm1 is on n2, pinned
  n1 has free: cpu 8000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
lose claim vm1#0
relist claim rewound versions=back
  opens vm1: l40s x2 by nvidia.com/L40S
claims vm1
