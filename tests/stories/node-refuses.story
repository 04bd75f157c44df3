# D7, C14: a node that refuses a VM's launcher is skipped for that VM, and for no other one.
class l40s
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
fail vm1-pod OutOfnvidia.com/L40S
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
phase vm1 Failed
gone pod vm1-pod
gone vmi vm1
  closes vm1
# Its next VMI goes elsewhere, also under another leader that began from a snapshot.
restart
epoch
progress
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
# Another VM may try the node.
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n2 for vm2-pod
start vm3 l40s=4
  opens vm3: l40s x4 by nvidia.com/L40S
  places vm3 on n1 for vm3-pod
pin vm3-pod n1
fail vm3-pod OutOfnvidia.com/L40S
  skips n1 for vm3, NodeRefused: vm3-pod goes
  releases vm3 from n1: NodeRefused
gone pod vm3-pod
gone vmi vm3
  closes vm3
show skips
  vm1: n1; vm3: n1
# Of two that refused it, none is left.
pin vm1-pod2 n2
fail vm1-pod2 OutOfcpu
  skips n2 for vm1 (u2), NodeRefused: vm1-pod2 goes
  releases vm1 (u2) from n2: NodeRefused
gone pod vm1-pod2
gone vmi vm1
  closes vm1 (u2)
start vm1 l40s=1 uid=u3 pod=vm1-pod3
  opens vm1 (u3): l40s x1 by nvidia.com/L40S
  vm1 (u3) waits: NodeSkipped
show vm1
  vm1 waits: NodeSkipped
end vm1-pod3
gone vmi vm1
  closes vm1 (u3)
