# T25, C35: a migration's target is neither pinned nor gated, and has the booking once its source is over.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
launch vm1-pod of vm1
  admits the launcher of vm1 as a2, pinned to n1
pin vm1-pod n1
list vm1 vm1-pod
launch target of vm1 migration
  admits the launcher of vm1 as a3, not gated
pin target n2
list vm1 vm1-pod target
end vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
