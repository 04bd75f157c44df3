# T11: a list removes only what it does not name and what is not newer than itself.
class l40s
node n1 l40s=1 cpu=8
open node
node n2 l40s=1 cpu=8
list-until node 1
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
open node
node n2 l40s=1 cpu=8
list-until node 999
show n2
  n2 has free: cpu 8000, nvidia.com/L40S 1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n2 for vm2-pod
