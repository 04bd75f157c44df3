# D10: claims that come together when a set is closed, or opened, are brought together in the same pass.
class l40s
node n1 l40s=1 cpu=8
claim a l40s=1 created=1
  puts claim a on n1: Ordered
vm vm1 uses=a
start vm1 uses=a
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
node n2 l40s=3 cpu=8
claim b l40s=1 created=2
  puts claim b on n2: Ordered
# The template is edited while the VM runs: b waits apart, and nothing is moved under a launcher.
vm vm1 uses=a uses=b
show a b
  a is on n1, of vm1
  b is on n2
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone vmi vm1
  closes vm1
  puts claim a, b on n2: Gathered
show a b
  a is on n2
  b is on n2
# A VMI without a VM names two claims that were each alone, and its launcher is not to be let go.
claim c l40s=1 created=3
  puts claim c on n1: Ordered
claim d l40s=2 created=4
  claim d waits: NoRoom
node n3 l40s=2 cpu=8
  puts claim d on n3: Ordered
show c d
  c is on n1
  d is on n3
start lone uses=c uses=d nvidia.com/L40S=1
  opens lone: l40s x1 by nvidia.com/L40S, l40s x2 by nvidia.com/L40S
  loses claim c, d on n1: NoNodeForAll
  lone waits: RequestsMismatch
show c d
  c is lost, NoNodeForAll: None, of lone
  d is lost, NoNodeForAll: None, of lone
