# F1: our finalizer, taken off a held claim by hand, is put on again when that is seen, not with the next decision.
class l40s
node n1 l40s=2 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
guarded mine
confirm mine 0
  confirmed
guarded mine not
  puts claim mine on n1: SaidAgain
guarded mine
confirm mine 0
  confirmed
# With the set of the VM that has it.
start vm1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
guarded mine not
  opens vm1: l40s x1 by nvidia.com/L40S
# Never on one that is being deleted, which takes none any more.
guarded mine
claim mine l40s=1 deleting
end vm1-pod
  releases vm1 from n1: LauncherEnded
  frees claim mine (uid-mine)
