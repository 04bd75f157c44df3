# T21: an affinity that changes before the pin has landed is pinned as it is now, or the node is given back.
class l40s
node n1 l40s=1 cpu=8 label=zone:a
node n2 l40s=1 cpu=8 label=zone:b
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
retarget vm1-pod affinity=zone:In:a,b
  places vm1 on n1 for vm1-pod if zone:In:a,b
retarget vm1-pod affinity=zone:In:b
  releases vm1 from n1: LauncherChanged
  places vm1 on n2 for vm1-pod if zone:In:b
pin vm1-pod n2
