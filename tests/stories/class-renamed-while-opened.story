# T24: a class is edited while a VM waits with a claim that was never placed: its launcher asks for what it was.
class a resource=nvidia.com/A
node n1 b=4 cpu=8
claim mine a=2
  claim mine waits: NoNodeOffersClass
start vm1 uses=mine
  opens vm1: a x2 by nvidia.com/A
  vm1 waits: NoNodeOffersClass
class a resource=nvidia.com/B
restart
node n2 a=4 b=4 cpu=8
  places vm1 on n2 for vm1-pod
show mine n2
  mine is on n2, of vm1
  n2 has free: cpu 7000, nvidia.com/A 2, nvidia.com/B 4
pin vm1-pod n2
end vm1-pod
  releases vm1 from n2: LauncherEnded
gone vmi vm1
  closes vm1
# Placed, it is counted by that; a new one by what its class says now.
claim more a=1
  puts claim more on n1: Ordered
show mine more n1 n2
  mine is on n2
  more is on n1
  n1 has free: cpu 8000, nvidia.com/B 3
  n2 has free: cpu 8000, nvidia.com/A 2, nvidia.com/B 4
gone claim mine
gone claim more
show n1 n2
  n1 has free: cpu 8000, nvidia.com/B 4
  n2 has free: cpu 8000, nvidia.com/A 4, nvidia.com/B 4
