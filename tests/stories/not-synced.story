# T11, D12, C37: nothing is placed before every kind was listed, nor while one is listed anew; not served is not empty.
cold
relist class
class l40s
relist node
node n1 l40s=1 cpu=8
relist pod
relist vmi
start vm1 l40s=1
show placing
  places: no
relist all
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
open pod
start vm2 l40s=1
end vm1-pod
relist pod
  releases vm1 from n1: LauncherEnded
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
unserved vmi
end vm2-pod
  releases vm2 from n1: LauncherEnded
show placing
  places: no
relist vmi
