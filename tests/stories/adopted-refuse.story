# T4, A12: a new generation takes over launchers under Refuse; who has none yet waits at the gate for its place.
class l40s
node n1 l40s=2 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1 on=n1
launch vm1-pod of vm1
  admits the launcher of vm1 as a2, pinned to n1
pin vm1-pod n1
list vm1 vm1-pod
ask vm2 l40s=1
  books vm2 on n1 for a3: l40s x1 by nvidia.com/L40S
store vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
adopt
  takes over vm1 on n1 with vm1-pod: l40s x1 by nvidia.com/L40S
  has taken over 1 sets, 0 claims
launch vm2-pod of vm2
  admits the launcher of vm2 as a4, gated
list vm2 vm2-pod
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
