# F1, D10: a claim that is being deleted has its units for as long as a launcher uses them, and no longer.
class l40s
node n1 l40s=1 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
start vm1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
claim mine l40s=1 deleting
show mine n1
  mine is on n1, of vm1
  n1 has free: cpu 7000, nvidia.com/L40S 0
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
end vm1-pod
  releases vm1 from n1: LauncherEnded
  frees claim mine (uid-mine)
  places vm2 on n1 for vm2-pod
show mine n1
  mine is freed
  n1 has free: cpu 7000, nvidia.com/L40S 0
gone claim mine
# The next claim of that name is another one.
claim mine l40s=1 uid=second
  claim mine waits: NoRoom
gone vmi vm1
  closes vm1
start vm1 uses=mine uid=again pod=again
  opens vm1 (again): l40s x1 by nvidia.com/L40S
  vm1 (again) waits: NoRoom
end vm2-pod
  releases vm2 from n1: LauncherEnded
  places vm1 (again) on n1 for again
show mine
  mine is on n1, of vm1
# A VM that waits behind the gate does not keep its claim from going.
claim spare l40s=1
  claim spare waits: NoRoom
start vm3 uses=spare
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: NoRoom
claim spare l40s=1 deleting
  frees claim spare (uid-spare)
  vm3 waits: ClaimNotFound
show spare vm3
  spare is freed
  vm3 waits: ClaimNotFound
gone claim spare
