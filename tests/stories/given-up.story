# D8: a VMI that is pinned to a node which can't keep it, and doesn't run, is given up after the grace.
class l40s
# Somebody else is ready.
node spare l40s=1 cpu=8 cordoned
node n1 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod
phase vm1 Scheduling
# A dip is borne: the time begins anew.
node n1 l40s=2 cpu=8 unready
show troubles
  n1: not-ready:nvidia.com/L40S
pass 299
node n1 l40s=2 cpu=8
show troubles
  no node is in trouble
node n1 l40s=2 cpu=8 unready
pass 299
pass 1
  gives up vm1 on n1: NodeNotReady
# Its units stay booked until its pod is gone.
show n1 vm1
  n1 has free: cpu 7000, nvidia.com/L40S 1
  vm1 is on n1, pinned
node n2 l40s=2 cpu=8
pass 299
phase vm1 Scheduling deleting
pass 600
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
show n1 troubles
  n1 has free: cpu 8000, nvidia.com/L40S 2
  no node is in trouble
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
# One that is still there after as long again is given up once more, also under another leader.
pin vm1-pod2
node n2 l40s=2 cpu=8 unready
pass 300
  gives up vm1 (u2) on n2: NodeNotReady
restart
pass 299
epoch
progress
pass 1
  gives up vm1 (u2) on n2: NodeNotReady
# What runs, or may, is left alone.
phase vm1 Running
pass 600
