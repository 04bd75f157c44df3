# C41: a plugin that flaps ends the first skip at once; then a change waits a minute, two, four, eight, ten.
class l40s
node n1 l40s=2 cpu=8
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
node n1 cpu=8
  vm1 (u2) waits: NoNodeOffersClass
node n1 l40s=2 cpu=8
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
node n1 cpu=8
  vm1 (u3) waits: NoNodeOffersClass
node n1 l40s=2 cpu=8
  vm1 (u3) waits: NodeSkipped
pass 59
node n1 cpu=8
  vm1 (u3) waits: NoNodeOffersClass
node n1 l40s=2 cpu=8
  vm1 (u3) waits: NodeSkipped
pass 1
  places vm1 (u3) on n1 for vm1-pod3
pin vm1-pod3 n1
fail vm1-pod3 UnexpectedAdmissionError
  skips n1 for vm1 (u3), NodeRefused: vm1-pod3 goes
  releases vm1 (u3) from n1: NodeRefused
gone pod vm1-pod3
gone vmi vm1
  closes vm1 (u3)
start vm1 l40s=1 uid=u4 pod=vm1-pod4
  opens vm1 (u4): l40s x1 by nvidia.com/L40S
  vm1 (u4) waits: NodeSkipped
node n1 l40s=1 cpu=8
pass 119
pass 1
  places vm1 (u4) on n1 for vm1-pod4
# A launcher that ran there is forgiven: the next change ends the next skip at once.
pin vm1-pod4 n1
run vm1-pod4
end vm1-pod4
  releases vm1 (u4) from n1: LauncherEnded
gone pod vm1-pod4
gone vmi vm1
  closes vm1 (u4)
start vm1 l40s=1 uid=u5 pod=vm1-pod5
  opens vm1 (u5): l40s x1 by nvidia.com/L40S
  places vm1 (u5) on n1 for vm1-pod5
pin vm1-pod5 n1
fail vm1-pod5 UnexpectedAdmissionError
  skips n1 for vm1 (u5), NodeRefused: vm1-pod5 goes
  releases vm1 (u5) from n1: NodeRefused
gone pod vm1-pod5
gone vmi vm1
  closes vm1 (u5)
start vm1 l40s=1 uid=u6 pod=vm1-pod6
  opens vm1 (u6): l40s x1 by nvidia.com/L40S
  vm1 (u6) waits: NodeSkipped
node n1 l40s=2 cpu=8
  places vm1 (u6) on n1 for vm1-pod6
