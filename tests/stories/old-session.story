# T11: what an ended session still delivers is ignored.
class l40s
relist node
node n1 l40s=1 cpu=8
old-session node n1 l40s=8 cpu=8
old-session node n2 l40s=8 cpu=8
show n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  vm1 waits: NoNodeOffersClass
