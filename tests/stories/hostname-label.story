# C18: a pin names the node; volumes and selectors match labels, also where a label says another node's name.
class l40s
node ip-10-0-1-5.ec2.internal l40s=2 cpu=8 label=kubernetes.io/hostname:ip-10-0-1-5
node worker-b l40s=1 cpu=8 label=kubernetes.io/hostname:ip-10-0-1-5.ec2.internal
pv p1 affinity=kubernetes.io/hostname:In:ip-10-0-1-5
pvc disk p1
start launcher-1 l40s=1 volume=disk
  opens launcher-1: l40s x1 by nvidia.com/L40S
  places launcher-1 on ip-10-0-1-5.ec2.internal for launcher-1-pod
start by-selector l40s=1 selector=kubernetes.io/hostname:ip-10-0-1-5.ec2.internal
  opens by-selector: l40s x1 by nvidia.com/L40S
  places by-selector on worker-b for by-selector-pod
