# T18: a launcher that came and went while nobody watched holds its VMI's booking for ten minutes, and not for ever.
class l40s
node n1 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
admit vm1 late
  admits the launcher of vm1 as late, pinned to n1
phase vm1 Succeeded
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
tick 30
ask vm2 l40s=1
  refuses vm2: NoRoom
tick 30
  releases vm1 from n1: VMIGone
ask vm3 l40s=1
  books vm3 on n1 for a3: l40s x1 by nvidia.com/L40S
