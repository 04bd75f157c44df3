# T12, T14: a claim that was gone and is seen again, as it was, is still its VM's: the units that run are its own.
class l40s
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
claim mine l40s=2
  puts claim mine on n1: Ordered
vm vm1 uses=mine l40s=1
start vm1 uses=mine l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1 on=n1
pin vm1-pod n1
node n1 l40s=4 cpu=8 cordoned
gone claim mine
show n1 n2
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 8000, nvidia.com/L40S 4
claim mine l40s=2
show mine n1 n2
  mine is on n1, of vm1
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 8000, nvidia.com/L40S 4
# Its set said again, nothing differs.
gone claim vm1#0
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x2 by nvidia.com/L40S
show mine
  mine is on n1, of vm1
end vm1-pod
  releases vm1 from n1: LauncherEnded
show mine n1 n2
  mine is on n1, of vm1
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 8000, nvidia.com/L40S 4
gone vmi vm1
  closes vm1
show mine
  mine is on n1
# The same while its VM waits; under another uid it is another claim.
node n1 l40s=4 cpu=1 cordoned
node n2 l40s=4 cpu=0
start vm1 uses=mine uid=again pod=again
  opens vm1 (again): l40s x2 by nvidia.com/L40S
  vm1 (again) waits: NoRoomForOtherResources
gone claim mine
  vm1 (again) waits: ClaimNotFound
claim mine l40s=2
  vm1 (again) waits: NoRoomForOtherResources
show mine
  mine is pending: None, of vm1
node n2 l40s=4 cpu=8
  places vm1 (again) on n2 for again
show mine n1 n2
  mine is on n2, of vm1
  n1 has free: cpu 1000, nvidia.com/L40S 4
  n2 has free: cpu 7000, nvidia.com/L40S 2
pin again n2
gone claim mine
claim mine l40s=2 uid=other
  puts claim mine on n2: Ordered
show mine n1 n2
  mine is on n2
  n1 has free: cpu 1000, nvidia.com/L40S 4
  n2 has free: cpu 7000, nvidia.com/L40S 0
restart
end again
  releases vm1 (again) from n2: LauncherEnded
gone vmi vm1
  closes vm1 (again)
show mine n1 n2
  mine is on n2
  n1 has free: cpu 1000, nvidia.com/L40S 4
  n2 has free: cpu 8000, nvidia.com/L40S 2
