# C23, K2, D12: where KubeVirt is not served nobody sees VMIs go: a class waits for claims, and for pods of sets alone.
class l40s
class a16
node n1 l40s=2 a16=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 a16=1
  opens vm2: a16 x1 by nvidia.com/A16
  places vm2 on n1 for vm2-pod
unserved vmi
unserved vm
class a16 deleting
class l40s deleting
gone pod vm2-pod
  releases vm2 from n1: LauncherGone
  frees class a16
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
  frees class l40s
# What is not listed yet, or was not heard of by a new leader, may use it.
class s
claim mine s=1
  claim mine waits: NoNodeOffersClass
epoch
class s deleting
gone claim mine
progress
  frees class s
