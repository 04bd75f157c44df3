# D9, D10: claims that one VM names leave a node together, to one that takes them all; else they go Lost as a whole.
class l40s
class a16
node n1 l40s=4 a16=4 cpu=8
claim one l40s=2
  puts claim one on n1: Ordered
claim two a16=2
  puts claim two on n1: Ordered
vm vm1 uses=one uses=two
show one two
  one is on n1
  two is on n1
node n2 l40s=2 a16=1 cpu=8
node n3 l40s=2 cpu=8
node n1 l40s=4 a16=4 cpu=8 unready
pass 300
  loses claim one, two on n1: NodeNotReady
  claim one, two waits: NodeNotReady
show one two
  one is lost, NodeNotReady: NodeNotReady
  two is lost, NodeNotReady: NodeNotReady
node n2 l40s=2 a16=2 cpu=8
  puts claim one, two on n2: Rebound
# A taint that one class does not tolerate is enough; one that it tolerates is none.
class a16 tolerates=dead
class l40s tolerates=dead
node n2 l40s=2 a16=2 cpu=8 taint=dead:NoExecute
node n4 l40s=4 a16=4 cpu=8
show troubles
  no node is in trouble
pass 600
class l40s
show troubles
  n2: taint:dead=:NoExecute
pass 299
pass 1
  puts claim one, two on n4: Moved
show one two troubles
  one is on n4
  two is on n4
  no node is in trouble
# A cordoned node keeps what it has.
node n4 l40s=4 a16=4 cpu=8 cordoned
pass 600
show one two
  one is on n4
  two is on n4
