# C30, D6, T14: a claim that a tenant orders has its units over the stops of its VM; a waiting VM does not get them.
class l40s
node n1 l40s=1 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
vm vm1 uses=mine
start vm1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
show n1 mine
  n1 has free: cpu 7000, nvidia.com/L40S 0
  mine is on n1, of vm1
# vm1 is restarted.
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone vmi vm1
  closes vm1
gone pod vm1-pod
show n1 mine
  n1 has free: cpu 8000, nvidia.com/L40S 0
  mine is on n1
start vm1 uses=mine uid=again pod=again
  opens vm1 (again): l40s x1 by nvidia.com/L40S
  places vm1 (again) on n1 for again
show n1 mine vm2
  n1 has free: cpu 7000, nvidia.com/L40S 0
  mine is on n1, of vm1
  vm2 waits: NoRoom
