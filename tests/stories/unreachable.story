# C35: on a node that nobody hears of a VM may still run: its units stay booked, and nothing is started again.
class l40s tolerates=node.kubernetes.io/unreachable:NoExecute
class plain resource=l40s
node n1 l40s=2 cpu=8
start vm1 plain=2
  opens vm1: plain x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
phase vm1 Running
node n1 l40s=2 cpu=8 unready taint=node.kubernetes.io/unreachable=:NoExecute
node n2 l40s=2 cpu=8 label=hand:made
terminate vm1-pod
show troubles
  n1: not-ready:nvidia.com/L40S
pass 600
show n1 vm1
  n1 has free: cpu 7000, nvidia.com/L40S 0
  vm1 is on n1, pinned
# (a) The node comes back, and the pod ends.
node n1 l40s=2 cpu=8
show troubles
  no node is in trouble
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone pod vm1-pod
gone vmi vm1
  closes vm1
# (b) An admin force-deletes pod and VMI: the next VMI goes elsewhere while the node is not ready.
gone node n2
start vm1 plain=2 uid=u2 pod=vm1-pod2
  opens vm1 (u2): plain x2 by nvidia.com/L40S
  places vm1 (u2) on n1 for vm1-pod2
node n2 l40s=2 cpu=8
pin vm1-pod2 n1
run vm1-pod2
phase vm1 Running
node n1 l40s=2 cpu=8 unready
terminate vm1-pod2
pass 600
gone pod vm1-pod2
  releases vm1 (u2) from n1: LauncherGone
gone vmi vm1
  closes vm1 (u2)
start vm1 plain=2 uid=u3 pod=vm1-pod3
  opens vm1 (u3): plain x2 by nvidia.com/L40S
  places vm1 (u3) on n2 for vm1-pod3
# (c) The node is deleted: units of it are nobody's, and still nothing is started until the pod is gone.
pin vm1-pod3 n2
run vm1-pod3
phase vm1 Running
gone node n2
node n1 l40s=2 cpu=8
pass 600
show vm1 n1
  vm1 is on n2, pinned
  n1 has free: cpu 8000, nvidia.com/L40S 2
gone pod vm1-pod3
  releases vm1 (u3) from n2: LauncherGone
# Where nothing says that it ran, the phase alone is enough to leave it.
gone vmi vm1
  closes vm1 (u3)
start vm1 plain=2 uid=u4 pod=vm1-pod4
  opens vm1 (u4): plain x2 by nvidia.com/L40S
  places vm1 (u4) on n1 for vm1-pod4
pin vm1-pod4 n1
phase vm1 Running
gone node n1
pass 600
