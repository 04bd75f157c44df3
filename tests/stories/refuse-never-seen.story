# T18: a booking for a VMI that never comes ends once its time is over and the watch went on beyond that.
class l40s
node n1 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
ask vm2 l40s=1
  refuses vm2: NoRoom
tick 30
tick 29
progress
tick 1
tick 20
ask vm2 l40s=1 uid=again
  refuses vm2: NoRoom
progress
  releases vm1 from n1: VMINeverSeen
  closes vm1
ask vm2 l40s=1 uid=once-more
  books vm2 (once-more) on n1 for a4: l40s x1 by nvidia.com/L40S
tick 30
tick 30
store vm2 l40s=1 uid=once-more
  opens vm2 (once-more): l40s x1 by nvidia.com/L40S
progress
tick 30
progress
