# T14, D10: a claim that is deleted under a living set is said again; the booking stays.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1
gone claim vm1#0
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1
show vm1 n1
  vm1 is on n1
  n1 has free: cpu 7000, nvidia.com/L40S 0
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
claims vm2
gone claim vm2#0
  opens vm2: l40s x1 by nvidia.com/L40S
# Gone with its VMI, it is not said again.
gone vmi vm2
  closes vm2
