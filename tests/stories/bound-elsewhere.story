# T23, C34: where a launcher without our gate is, is where its booking is, whoever bound it there.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=4 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
start vm1 l40s=1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
# Ungated by hand, and bound elsewhere by the scheduler.
pin vm1-pod
show vm1
  vm1 is on n1, pinned
pin vm1-pod n2
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
show vm1 mine n1 n2
  vm1 is on n2, pinned
  mine is on n2, of vm1
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 7000, nvidia.com/L40S 2
end vm1-pod
  releases vm1 from n2: LauncherEnded
gone vmi vm1
  closes vm1
gone claim mine
gone node n2
# The pin of an earlier booking lands late: the set was released, and is booked elsewhere by then.
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
outcome vm2 pin 503 Unavailable
  releases vm2 from n1: PinRefused
  vm2 waits: WriteRefused
node n1 l40s=2 cpu=8 cordoned
node n2 l40s=4 cpu=8
tick 2
  places vm2 on n2 for vm2-pod
tick 2
show vm2
  vm2 is on n2
pin vm2-pod n1
  opens vm2: l40s x1 by nvidia.com/L40S
show vm2 n1 n2
  vm2 is on n1, pinned
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 8000, nvidia.com/L40S 4
# Or it has no booking by then.
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  places vm3 on n2 for vm3-pod
outcome vm3 pin 503 Unavailable
  releases vm3 from n2: PinRefused
  vm3 waits: WriteRefused
retarget vm3-pod affinity=@metadata.name:In:n2
pin vm3-pod
  opens vm3: l40s x1 by nvidia.com/L40S
show vm3 n2
  vm3 is on n2, pinned
  n2 has free: cpu 7000, nvidia.com/L40S 3
pin vm3-pod n2
fail vm3-pod OutOfnvidia.com/L40S
  skips n2 for vm3, NodeRefused: vm3-pod goes
  releases vm3 from n2: NodeRefused
show vm3 n2
  vm3 waits: None
  n2 has free: cpu 8000, nvidia.com/L40S 4
