# D5: the reason is that of the node that came nearest, whatever the order in which nodes are asked.
class l40s
node n1 l40s=1 cpu=8 taint=gpu=own:NoSchedule
node n2 l40s=2 cpu=8 cordoned
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: TaintNotTolerated
node n3 l40s=3 cpu=8 label=zone:a
  places vm1 on n3 for vm1-pod
node n0 l40s=3 cpu=8 unready
raw full n3 l40s=3
start vm2 l40s=1 selector=zone:b
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NodeAffinityMismatch
start vm3 l40s=3
  opens vm3: l40s x3 by nvidia.com/L40S
  vm3 waits: NoRoom
