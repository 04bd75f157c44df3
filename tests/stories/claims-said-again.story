# T12: claims that a server back from a backup shows as they were before are said again; what it lost is lost.
class l40s
node n1 l40s=3 cpu=8
claim shown l40s=1
  puts claim shown on n1: Ordered
claim gone l40s=1
  puts claim gone on n1: Ordered
claim waits l40s=9
  claim waits waits: NoNodeOffersClass
written shown
show shown gone waits
  shown is on n1
  gone is on n1
  waits is pending: NoNodeOffersClass
open claim rewound
claim shown l40s=1
claim waits l40s=9
list-until claim 900
  puts claim shown on n1: SaidAgain
  claim waits waits: NoNodeOffersClass
show shown waits n1
  shown is on n1
  waits is pending: NoNodeOffersClass
  n1 has free: cpu 8000, nvidia.com/L40S 2
start vm1 uses=shown
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
open claim rewound
claim shown l40s=1
list-until claim 900
  opens vm1: l40s x1 by nvidia.com/L40S
show shown n1
  shown is on n1, of vm1
  n1 has free: cpu 7000, nvidia.com/L40S 2
# The same of a claim that a set holds: written since, it is shown as before.
written shown
open claim rewound
claim shown l40s=1
list-until claim 900
  opens vm1: l40s x1 by nvidia.com/L40S
written shown
relist claim rewound
  puts claim gone on n1: Ordered
  claim waits waits: NoNodeOffersClass
