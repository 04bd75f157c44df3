# C42: a volume that the launcher alone names, as for hot-plug, counts like the VMI's own, and wakes it when it comes.
class l40s
node n1 l40s=1 cpu=8 label=zone:a
node n2 l40s=1 cpu=8 label=zone:b
start vm1 l40s=1 claim=scratch
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: VolumeNotFound
pv p affinity=zone:In:b
pvc scratch p
  places vm1 on n2 for vm1-pod
