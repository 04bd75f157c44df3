# T14: a status that is observed confirms a booking and never overrides one; bookings come from decisions alone.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1 on=n2
show vm1 n1 n2
  vm1 is on n1
  n1 has free: cpu 7000, nvidia.com/L40S 0
  n2 has free: cpu 8000, nvidia.com/L40S 2
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  places vm2 on n2 for vm2-pod
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: NoRoom
claims vm3 on=n1
show vm3
  vm3 waits: NoRoom
