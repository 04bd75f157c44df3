# C42: a volume that is bound elsewhere while its VM waits changes the reason, once.
class l40s
node n1 l40s=1 cpu=8 label=zone:a
node n2 cpu=8 label=zone:b
raw full n1 l40s=1
pvc disk
start vm1 l40s=1 volume=disk
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: NoRoom
pv p affinity=zone:In:b
pvc disk p
  vm1 waits: VolumeOnOtherNode
gone pod full
