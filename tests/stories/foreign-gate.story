# C56, T25: a pod is placed only once ours is the last gate; the other one is not ours to take off.
class l40s
node n1 l40s=1 cpu=8
start launcher-1 l40s=1 gate=kueue.x-k8s.io/admission
  opens launcher-1: l40s x1 by nvidia.com/L40S
  launcher-1 waits: ForeignGate
start launcher-2 l40s=1
  opens launcher-2: l40s x1 by nvidia.com/L40S
  places launcher-2 on n1 for launcher-2-pod
tick 30
end launcher-2-pod
  releases launcher-2 from n1: LauncherEnded
ungate launcher-1-pod kueue.x-k8s.io/admission
  places launcher-1 on n1 for launcher-1-pod
