# C35, C43, D10: after a live migration the booking and the claims are where the VM is, and are used until its pod ends.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=4 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
start vm1 l40s=1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
admit vm1 move
  admits the launcher of vm1 as move, gated
pod target of vm1 stamp=move migration bare
list vm1 vm1-pod target
pin target n2
run target
# While both run, both have their units.
show vm1 n1 n2
  vm1 is on n1, pinned
  n1 has free: cpu 7000, nvidia.com/L40S 0
  n2 has free: cpu 7000, nvidia.com/L40S 2
end vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
show vm1 mine n1 n2
  vm1 is on n2, pinned
  mine is on n2, of vm1
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 7000, nvidia.com/L40S 2
gone pod vm1-pod
claim mine l40s=1 deleting
show mine
  mine is on n2, of vm1
end target
  releases vm1 from n2: LauncherEnded
  frees claim mine (uid-mine)
# A target that ends first, as where a migration is cancelled, changes nothing.
claim other l40s=1
  puts claim other on n1: Ordered
start vm2 l40s=1 uses=other
  opens vm2: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
pin vm2-pod n1
run vm2-pod
admit vm2 again
  admits the launcher of vm2 as again, gated
pod target2 of vm2 stamp=again migration bare
list vm2 vm2-pod target2
pin target2 n2
end target2
show vm2 other
  vm2 is on n1, pinned
  other is on n1, of vm2
# A target that was not listed has no booking, counts by itself, and keeps its claim from going.
admit vm2 third
  admits the launcher of vm2 as third, gated
pod target3 of vm2 stamp=third migration bare
pin target3 n2
end vm2-pod
  releases vm2 from n1: LauncherEnded
claim other l40s=1 deleting
show n1 n2 other
  n1 has free: cpu 8000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 2
  other is on n1, of vm2
gone pod target3
  frees claim other (uid-other)
