# D7, C13: a node that did not take a launcher pinned at its creation is skipped for the VM's next VMI, under Refuse too.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=2 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
launch vm1-pod of vm1
  admits the launcher of vm1 as a2, pinned to n1
list vm1 vm1-pod
pin vm1-pod n1
fail vm1-pod UnexpectedAdmissionError
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
ask vm1 l40s=1 uid=second
  vm1 (second) is not decided yet: FormerRunNotOver
gone pod vm1-pod
gone vmi vm1
  closes vm1
  books vm1 (second) on n2 for a3: l40s x1 by nvidia.com/L40S
ask vm1 l40s=1 uid=third
  releases vm1 (second) from n2: SupersededByNewerRequest
  closes vm1 (second)
  books vm1 (third) on n2 for a4: l40s x1 by nvidia.com/L40S
