# D11, T25: a pod is of the VMI that it was first seen as one of: whoever edits its owner references moves no units.
class l40s
node n1 l40s=4 cpu=8
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
# Counted once, whoever it says it belongs to; and what is free is free for others.
disown vm1-pod
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 2
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
pin vm2-pod n1
disown vm2-pod vm1
# When it ends its units are free.
end vm1-pod
  releases vm1 from n1: LauncherEnded
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 2
end vm2-pod
  releases vm2 from n1: LauncherEnded
