# T4, D5: while placing is paused a cluster is taken over all the same; nobody new gets a place until it goes on.
class l40s
node n1 l40s=2 cpu=8
claim idle l40s=1
  puts claim idle on n1: Ordered
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
claims vm1 on=n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
claims vm2
shown idle n1
settings paused=true
  vm2 waits: Paused
adopt
  takes over vm1 on n1 with vm1-pod: l40s x1 by nvidia.com/L40S
  takes over the launcher of vm2: r2
  takes over claim idle on n1
  has taken over 1 sets, 1 claims
continue
  1 SetOpened
  1 SetWaits
show vm1 vm2 idle n1
  vm1 is on n1, pinned
  vm2 waits: Paused
  idle is on n1
  n1 has free: cpu 7000, nvidia.com/L40S 0
end vm1-pod
  releases vm1 from n1: LauncherEnded
settings paused=false
  places vm2 on n1 for vm2-pod
