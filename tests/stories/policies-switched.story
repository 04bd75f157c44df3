# A11, A12: what was started under one policy keeps it; a VMI under Schedule is the scheduler's, and counts as any pod.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
vmi vm2 l40s=1 policy=Schedule
admit vm2 s1
  admits the launcher of vm2 as s1, not gated
pod vm2-pod of vm2 stamp=s1 bare
list vm2 vm2-pod
ask vm3 l40s=2
  refuses vm3: NoRoom
pin vm2-pod n1
ask vm3 l40s=1 uid=again
  refuses vm3: NoRoom
end vm2-pod
ask vm3 l40s=1 uid=once-more
  books vm3 (once-more) on n1 for a4: l40s x1 by nvidia.com/L40S
store vm3 l40s=1 uid=once-more
  opens vm3 (once-more): l40s x1 by nvidia.com/L40S
start vm4 l40s=1
  opens vm4: l40s x1 by nvidia.com/L40S
  vm4 waits: NoRoom
launch vm3-pod of vm3
  admits the launcher of vm3 (once-more) as a6, pinned to n1
