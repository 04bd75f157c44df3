# D10: a new order that joins bound claims leaves them where they are, and comes to them; or all go where all fit.
class l40s
node n1 l40s=2 cpu=8
vm vm1 uses=a uses=b
claim a l40s=1 created=1
  puts claim a on n1: Ordered
claim other l40s=1 created=2
  puts claim other on n1: Ordered
claim b l40s=1 created=3
  claim b waits: NoRoom
show a b
  a is on n1
  b is pending: NoRoom
gone claim other
  puts claim a, b on n1: Ordered
show a b
  a is on n1
  b is on n1
# An order that nothing on their node would take goes with them elsewhere.
vm vm1 uses=a uses=b uses=c
claim c l40s=1 created=4
  claim c waits: NoNodeOffersClass
node n2 l40s=3 cpu=8
  puts claim a, b, c on n2: Ordered
show a b c n1 n2
  a is on n2
  b is on n2
  c is on n2
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 8000, nvidia.com/L40S 0
# Claims that are not the VM's any more are by themselves, and stay.
vm vm1 uses=a
show a b c
  a is on n2
  b is on n2
  c is on n2
