# D7: an operator ends what a VM skips: on one node, or on all.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
fail vm1-pod OutOfcpu
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
gone pod vm1-pod
gone vmi vm1
  closes vm1
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
pin vm1-pod2 n2
fail vm1-pod2 OutOfcpu
  skips n2 for vm1 (u2), NodeRefused: vm1-pod2 goes
  releases vm1 (u2) from n2: NodeRefused
gone pod vm1-pod2
gone vmi vm1
  closes vm1 (u2)
command unskip vm2
  refuses unskip: VM t/vm2 skips no node now
start vm1 l40s=1 uid=u3 pod=vm1-pod3
  opens vm1 (u3): l40s x1 by nvidia.com/L40S
  vm1 (u3) waits: NodeSkipped
command unskip vm1 n3
  refuses unskip: VM t/vm1 skips no node n3 now
command unskip vm1 n2
  does unskip: VM t/vm1 may be placed on n2 again
  places vm1 (u3) on n2 for vm1-pod3
end vm1-pod3
  releases vm1 (u3) from n2: LauncherEnded
gone vmi vm1
  closes vm1 (u3)
# The refusals are forgotten: nothing was in a row.
command unskip vm1
  does unskip: VM t/vm1 may be placed on n1 again
command unskip vm1
  refuses unskip: VM t/vm1 skips no node now
start vm1 l40s=1 uid=u4 pod=vm1-pod4
  opens vm1 (u4): l40s x1 by nvidia.com/L40S
  places vm1 (u4) on n1 for vm1-pod4
