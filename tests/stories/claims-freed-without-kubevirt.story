# C23, F1: where KubeVirt is not served, or the feature is off, claims are still freed, and nothing is placed.
class l40s
node n1 l40s=1 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
settings enabled=false
claim mine l40s=1 deleting
  frees claim mine (uid-mine)
show mine n1
  mine is freed
  n1 has free: cpu 8000, nvidia.com/L40S 1
gone claim mine
unserved vm
unserved vmi
claim more l40s=1
claim more l40s=1 deleting
  frees claim more (uid-more)
show more placing
  more is freed
  places: no
# A kind that was never listed is no reason to let go: what uses the claim may only not be known yet.
cold
relist claim
relist node
relist class
class l40s
claim most l40s=1
claim most l40s=1 deleting
show most
  most is pending: None
relist all
  frees claim most (uid-most)
show most
  most is freed
