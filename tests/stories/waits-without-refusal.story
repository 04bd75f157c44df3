# C57, D5: a set without room waits behind its gate, the same VMI all the time, and goes on within a pass.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
tick 600
tick 600
show vm2
  vm2 waits: NoRoom
end vm1-pod
  releases vm1 from n1: LauncherEnded
  places vm2 on n1 for vm2-pod
