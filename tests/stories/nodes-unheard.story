# C16, D9: where nobody who offers a resource is ready, nodes can't be heard: nothing is taken off them for that.
class l40s
class a16
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
node n3 a16=2 cpu=8
claim one l40s=1
  puts claim one on n1: Ordered
claim two l40s=2
  puts claim two on n2: Ordered
start vm1 a16=1
  opens vm1: a16 x1 by nvidia.com/A16
  places vm1 on n3 for vm1-pod
pin vm1-pod n3
node n1 l40s=2 cpu=8 unready taint=node.kubernetes.io/unreachable=:NoSchedule
pass 299
node n3 a16=2 cpu=8 unready
node n2 l40s=2 cpu=8 unready taint=node.kubernetes.io/unreachable=:NoSchedule
show troubles
  no node is in trouble
pass 900
show one two vm1
  one is on n1
  two is on n2
  vm1 is on n3, pinned
# They are heard again one by one: each has its grace from then on.
node n3 a16=2 cpu=8 taint=node.kubernetes.io/unreachable=:NoSchedule
show troubles
  n3: taint:node.kubernetes.io/unreachable=:NoSchedule
node n3 a16=2 cpu=8
node n2 l40s=2 cpu=8
show troubles
  n1: not-ready:nvidia.com/L40S
pass 280
restart
gone claim two
show one
  one is on n1
pass 20
  puts claim one on n2: Moved
show one
  one is on n2
