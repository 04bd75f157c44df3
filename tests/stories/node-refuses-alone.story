# C14: where no other node serves, the VM waits ten minutes for one new try; each refusal is one skip.
class l40s
node n1 l40s=4 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
fail vm1-pod UnexpectedAdmissionError
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
gone pod vm1-pod
gone vmi vm1
  closes vm1
start vm1 l40s=1 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x1 by nvidia.com/L40S
  vm1 (u2) waits: NodeSkipped
# A change of labels or of others' use is none of the node's resources, taints or readiness.
node n1 l40s=4 cpu=8 label=a:b
raw other n1 cpu=1
pass 599
pass 1
  places vm1 (u2) on n1 for vm1-pod2
pin vm1-pod2 n1
fail vm1-pod2 UnexpectedAdmissionError
  skips n1 for vm1 (u2), NodeRefused: vm1-pod2 goes
  releases vm1 (u2) from n1: NodeRefused
gone pod vm1-pod2
gone vmi vm1
  closes vm1 (u2)
start vm1 l40s=1 uid=u3 pod=vm1-pod3
  opens vm1 (u3): l40s x1 by nvidia.com/L40S
  vm1 (u3) waits: NodeSkipped
pass 599
