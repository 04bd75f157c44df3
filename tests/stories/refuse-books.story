# A12, P1, T17: under Refuse the set is booked before VMI and launcher are there; the launcher is pinned at its creation.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n2 for a1: l40s x1 by nvidia.com/L40S
ask vm2 l40s=2
  books vm2 on n1 for a2: l40s x2 by nvidia.com/L40S
ask vm3 l40s=1
  refuses vm3: NoRoom
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1 on=n2
launch vm1-pod of vm1
  admits the launcher of vm1 as a4, pinned to n2
list vm1 vm1-pod
store vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
claims vm2 on=n1
launch vm2-pod of vm2
  admits the launcher of vm2 as a5, pinned to n1
pin vm2-pod n1
list vm2 vm2-pod
run vm2-pod
ask vm3 l40s=2 uid=again
  refuses vm3: NoRoom
end vm2-pod
  releases vm2 from n1: LauncherEnded
ask vm3 l40s=2 uid=once-more
  books vm3 (once-more) on n1 for a7: l40s x2 by nvidia.com/L40S
