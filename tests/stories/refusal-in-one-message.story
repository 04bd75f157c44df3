# D7, C14: a refused launcher that is gone before anybody decides is a refusal all the same.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
open node
fail vm1-pod OutOfpods
gone pod vm1-pod
gone vmi vm1
relist node
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
  closes vm1
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  places vm1 (u2) on n2 for vm1-pod2
