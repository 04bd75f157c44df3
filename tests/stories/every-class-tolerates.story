# C19: each class must tolerate the node's hard taints on its own, though the pod gets the union of tolerations.
class l40s tolerates=gpu=l40s:NoSchedule
class h100 tolerates=gpu tolerates=gpu2
class any-ns resource=l40s tolerates=*:NoSchedule
node n1 l40s=2 h100=2 cpu=64 taint=gpu=l40s:NoSchedule taint=gpu2=h100:NoSchedule
node n2 l40s=2 h100=2 cpu=64 taint=gpu=l40s:NoSchedule
node n3 l40s=9 cpu=64 cordoned
node n4 l40s=1 cpu=64 taint=soft=1:PreferNoSchedule
node n5 l40s=1 cpu=64 taint=x=1:NoExecute
start a l40s=1 h100=1
  opens a: l40s x1 by nvidia.com/L40S, h100 x1 by nvidia.com/H100
  places a on n2 for a-pod
raw full n1 l40s=2
raw full2 n2 l40s=1
start b l40s=1
  opens b: l40s x1 by nvidia.com/L40S
  places b on n4 for b-pod
# A cordoned node takes nobody here, not even whom a blanket toleration would let pass at the scheduler.
gone pod full
start c any-ns=2
  opens c: any-ns x2 by nvidia.com/L40S
  places c on n1 for c-pod
start d any-ns=1
  opens d: any-ns x1 by nvidia.com/L40S
  d waits: NoRoom
