# C42, D4: every bound volume must reach the node, hot-plugged ones too; what is missing is a reason, not an error.
class l40s
node n1 l40s=1 cpu=8 label=kubernetes.io/hostname:n1 label=zone:a
node n2 l40s=1 cpu=8 label=kubernetes.io/hostname:n2 label=zone:b
pv pz affinity=zone:In:b affinity=zone:In:c
pv p1 affinity=kubernetes.io/hostname:In:n1
pv pfree
pvc z pz
pvc one p1
pvc free pfree
pvc late
start in-zone l40s=1 volume=z
  opens in-zone: l40s x1 by nvidia.com/L40S
  places in-zone on n2 for in-zone-pod
start nowhere l40s=1 volume=z volume=one
  opens nowhere: l40s x1 by nvidia.com/L40S
  nowhere waits: VolumeOnOtherNode
show n1 n2
  n1 has free: cpu 8000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
start no-pvc l40s=1 volume=absent
  opens no-pvc: l40s x1 by nvidia.com/L40S
  no-pvc waits: VolumeNotFound
pvc lost pgone
start no-pv l40s=1 claim=lost
  opens no-pv: l40s x1 by nvidia.com/L40S
  no-pv waits: VolumeNotFound
# A late-binding volume is made where the pod lands; one broken VM stops nobody else.
start waits-for-consumer l40s=1 volume=late volume=free
  opens waits-for-consumer: l40s x1 by nvidia.com/L40S
  places waits-for-consumer on n1 for waits-for-consumer-pod
end waits-for-consumer-pod
  releases waits-for-consumer from n1: LauncherEnded
# What was missing comes.
pvc absent p1
  places no-pvc on n1 for no-pvc-pod
end in-zone-pod
  releases in-zone from n2: LauncherEnded
pv pgone affinity=zone:In:b
  places no-pv on n2 for no-pv-pod
