# D1, A11: a VMI under Schedule, one that ends, and one that is being deleted are not placed.
class l40s
node n1 l40s=4 cpu=8
start scheduled l40s=1 policy=Schedule
vmi done l40s=1
admit done r
  admits the launcher of done as r, gated
pod done-pod of done stamp=r
phase done Succeeded
list done done-pod
start going l40s=4
  opens going: l40s x4 by nvidia.com/L40S
  places going on n1 for going-pod
vmi leaving l40s=1
phase leaving Pending deleting
