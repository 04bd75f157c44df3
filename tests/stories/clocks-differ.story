# C63, T9: a skip lasts ten minutes of logical time, over a change of leader and clocks that jump: no stamp of another is believed.
class l40s
node n1 l40s=1 cpu=8
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
pass 300
# The server's stamps step back by an hour, and another leader begins from a snapshot.
tick -3600
restart
epoch
progress
pass 280
# They jump ahead: no more than one step of it counts.
tick -120
pass 19
show vm1 time
  vm1 waits: NodeSkipped
  logical time 599 s, silence 0 s
tick 1
  places vm1 (u2) on n1 for vm1-pod2
# A stamp far ahead does not end the next one at once.
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
tick 900
show vm1
  vm1 waits: NodeSkipped
pass 569
pass 1
  places vm1 (u3) on n1 for vm1-pod3
