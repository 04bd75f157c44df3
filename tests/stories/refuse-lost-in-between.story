# D8, P2: a booking that its node can't keep before the launcher is there is released; the launcher waits at the gate.
class l40s
node n1 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
ask vm2 l40s=1
  refuses vm2: NoRoom
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
gone node n1
tick 30
tick 30
  releases vm1 from n1: NodeCannotKeep
launch vm1-pod of vm1
  admits the launcher of vm1 as a3, gated
list vm1 vm1-pod
  vm1 waits: NoNodeOffersClass
node n2 l40s=1 cpu=8
  places vm1 on n2 for vm1-pod
