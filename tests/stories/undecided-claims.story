# T14: a template claim that nobody decided is deleted by uid; so is one that took a decided name with something else.
class l40s
node n1 l40s=1 cpu=8
vmi vm1 l40s=1
claim stray of vm1 class=l40s
  drops claim stray (uid-vm1-claim)
gone claim stray
admit vm1 r
  admits the launcher of vm1 as r, gated
pod vm1-pod of vm1 stamp=r
list vm1 vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claims vm1
gone claim vm1#0
  opens vm1: l40s x1 by nvidia.com/L40S
claim vm1#0 of vm1 class=l40s count=3 uid=greedy
  drops claim vm1-f653c55e03-0 (greedy)
gone claim vm1#0
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1
gone claim vm1#0
  opens vm1: l40s x1 by nvidia.com/L40S
claim vm1#0 of vm1 class=h100 uid=other-class
  drops claim vm1-f653c55e03-0 (other-class)
