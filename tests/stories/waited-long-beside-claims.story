# C55, C30: where a node is kept for another, a VM whose claims hold all its units there starts on them.
class l40s
node n1 l40s=4 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
claim more l40s=1
  puts claim more on n1: Ordered
vm vm1 uses=mine uses=more
raw raw1 n1 l40s=2
start big l40s=4
  opens big: l40s x4 by nvidia.com/L40S
  big waits: NoRoom
raw raw1 n1 l40s=1
pass 620
  keeps n1 for big
# What becomes free is for the one that waits; what a claim holds never was.
start vm1 uses=mine uses=more
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
show big mine more
  big waits: NoRoom
  mine is on n1, of vm1
  more is on n1, of vm1
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone vmi vm1
  closes vm1
# With one unit that it does not hold, it would take of what is kept.
start vm1 uses=mine uses=more l40s=1 uid=again pod=again
  opens vm1 (again): l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  vm1 (again) waits: NodeKeptForAnother
gone vmi vm1
  closes vm1 (again)
gone pod again
claim third l40s=1
  claim third waits: NodeKeptForAnother
show third
  third is pending: NodeKeptForAnother
