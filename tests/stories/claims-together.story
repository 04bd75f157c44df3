# D10: the claims that one VM names go together: split over nodes they are gathered, or go Lost and are bound as one.
class l40s
node n1 l40s=2 cpu=8
claim a l40s=1 created=1
  puts claim a on n1: Ordered
claim b l40s=1 created=2
  puts claim b on n1: Ordered
node n2 l40s=1 cpu=8
claim c l40s=1 created=3
  puts claim c on n2: Ordered
show a b c
  a is on n1
  b is on n1
  c is on n2
# c joins b: nobody has room for both but where another one has to go; b and c are on two nodes no longer.
vm vm1 uses=b uses=c
  loses claim b, c on n1: NoNodeForAll
  claim b, c waits: NoRoom
show a b c
  a is on n1
  b is lost, NoNodeForAll: NoRoom
  c is lost, NoNodeForAll: NoRoom
gone claim a
  puts claim b, c on n1: Rebound
show b c
  b is on n1
  c is on n1
# A new order that is named together with a bound claim comes to it, or both go where there is room for both.
claim d l40s=1 created=4
  puts claim d on n2: Ordered
vm vm1 uses=b uses=c uses=d
  loses claim b, c, d on n1: NoNodeForAll
  claim b, c, d waits: NoNodeOffersClass
show b c d
  b is lost, NoNodeForAll: NoNodeOffersClass
  c is lost, NoNodeForAll: NoNodeOffersClass
  d is lost, NoNodeForAll: NoNodeOffersClass
node n3 l40s=3 cpu=8
  puts claim b, c, d on n3: Rebound
show b c d n1 n2
  b is on n3
  c is on n3
  d is on n3
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 8000, nvidia.com/L40S 1
# Without the VM each is by itself again, and nothing moves.
gone vm vm1
show b c d
  b is on n3
  c is on n3
  d is on n3
