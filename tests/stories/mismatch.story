# D3: the gate is taken off only if the pod's GPU requests equal its set; else that is the reason shown.
class l40s
class h100
node n1 l40s=4 h100=4 cpu=8
start more l40s=1 nvidia.com/L40S=2
  opens more: l40s x1 by nvidia.com/L40S
  more waits: RequestsMismatch
start other l40s=1 nvidia.com/H100=1
  opens other: l40s x1 by nvidia.com/L40S
  other waits: RequestsMismatch
start none l40s=1 nvidia.com/L40S=0
  opens none: l40s x1 by nvidia.com/L40S
  none waits: RequestsMismatch
start right l40s=2
  opens right: l40s x2 by nvidia.com/L40S
  places right on n1 for right-pod
