# C55, D6: in one pass gated pods are served first, then Lost sets, then new orders; the fullest node with room takes each.
class l40s
node n9 l40s=2 cpu=8
claim lost l40s=2 created=9
  puts claim lost on n9: Ordered
gone node n9
pass 80
  loses claim lost on n9: NodeGone
  claim lost waits: NoNodeOffersClass
settings paused=true
  claim lost waits: Paused
node n1 l40s=4 cpu=8
node n2 l40s=4 cpu=8
node n3 l40s=4 cpu=8
raw r1 n1 l40s=2
raw r3 n3 l40s=3
start big l40s=4
  opens big: l40s x4 by nvidia.com/L40S
  big waits: Paused
start small l40s=1
  opens small: l40s x1 by nvidia.com/L40S
  small waits: Paused
claim new l40s=1 created=1
  claim new waits: Paused
settings paused=false
  places big on n2 for big-pod
  places small on n3 for small-pod
  puts claim lost on n1: Rebound
  claim new waits: NoRoom
show lost new big small
  lost is on n1
  new is pending: NoRoom
  big is on n2
  small is on n3
# Among new orders the oldest is first, then the name; one too large holds up nobody.
claim large l40s=5 created=1
  claim large waits: NoNodeOffersClass
claim b l40s=1 created=3
  claim b waits: NoRoom
claim a l40s=1 created=3
  claim a waits: NoRoom
claim c l40s=1 created=2
  claim c waits: NoRoom
gone pod r3
  puts claim new on n3: Ordered
  puts claim c on n3: Ordered
  puts claim a on n3: Ordered
