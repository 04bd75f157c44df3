# C13: a launcher refused before the device plugin is back: the plugin's return ends the skip at once.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
run vm1-pod
node n1 cpu=8 unready
node n1 cpu=8
fail vm1-pod UnexpectedAdmissionError
  skips n1 for vm1, NodeRefused: vm1-pod goes
  releases vm1 from n1: NodeRefused
phase vm1 Failed
# The failed pod stays for a while: it counts for nothing, and is told to go once. The VM's node outlives its VMI.
gone vmi vm1
  closes vm1
show skips
  vm1: n1
start vm1 l40s=2 uid=u2 pod=vm1-pod2
  opens vm1 (u2): l40s x2 by nvidia.com/L40S
  vm1 (u2) waits: NoNodeOffersClass
tick 20
tick 20
tick 20
show vm1
  vm1 waits: NoNodeOffersClass
node n1 l40s=2 cpu=8
  places vm1 (u2) on n1 for vm1-pod2
show n1 vm1
  n1 has free: cpu 7000, nvidia.com/L40S 0
  vm1 is on n1
gone pod vm1-pod
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 0
