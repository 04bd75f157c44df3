# T12: what an API server that came back from a backup does not show any more is said again: claims that are gone, and
# the pin of a launcher that stands behind our gate again.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1
pin vm1-pod n1
show vm1
  vm1 is on n1, pinned
open pod rewound
pod vm1-pod of vm1 stamp=r1
list-until pod 1
  opens vm1: l40s x1 by nvidia.com/L40S
show vm1
  vm1 is on n1
pin vm1-pod n1
show vm1
  vm1 is on n1, pinned
lose claim vm1#0
relist claim rewound versions=back
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1
