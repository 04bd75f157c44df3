# D11: a pod is the launcher only once the VMI lists it in status.activePods; before that nothing is said of it.
class l40s
node n1 l40s=2 cpu=8
vmi vm1 l40s=1
admit vm1 r
  admits the launcher of vm1 as r, gated
pod vm1-pod of vm1 stamp=r
tick 5
list vm1 vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
vmi vm2 l40s=1
admit vm2 m
  admits the launcher of vm2 as m, gated
pod target of vm2 stamp=m migration
list vm2 target
