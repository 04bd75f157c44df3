# T4: after the log was lost, what launchers and claims show is booked as it stands: nothing restarts, nobody gets a unit twice,
# and a VM that waits keeps the claims that were made for it.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
claim idle l40s=1
  puts claim idle on n1: Ordered
start vm1 l40s=1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
pin vm1-pod n2
run vm1-pod
claims vm1 on=n2
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  vm2 waits: NoRoom
claims vm2
shown mine n1
shown idle n1
adopt
  takes over vm1 on n2 with vm1-pod: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  takes over the launcher of vm2: r2
  takes over claim idle on n1
  has taken over 1 sets, 2 claims
continue
  1 SetOpened
  1 SetWaits
show vm1 vm2 mine idle n1 n2
  vm1 is on n2, pinned
  vm2 waits: NoRoom
  mine is on n2, of vm1
  idle is on n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
end vm1-pod
  releases vm1 from n2: LauncherEnded
gone vmi vm1
  closes vm1
gone pod vm1-pod
show vm2 mine n1 n2
  vm2 waits: NoRoom
  mine is on n2
  n1 has free: cpu 8000, nvidia.com/L40S 1
  n2 has free: cpu 8000, nvidia.com/L40S 1
