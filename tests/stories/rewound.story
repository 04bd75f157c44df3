# T12: an API server that came back from a backup is believed although its versions went back; nothing is placed meanwhile.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
node n1 l40s=4 cpu=8
lose node n1
relist node rewound versions=back
show placing
  places: yes
open pod rewound
show placing
  places: no
start vm2 l40s=1
relist all rewound
  releases vm1 from n1: PinRefused
  opens vm2: l40s x1 by nvidia.com/L40S
  vm1 waits: WriteRefused
  vm2 waits: NoNodeOffersClass
  opens vm1: l40s x1 by nvidia.com/L40S
  opens vm2: l40s x1 by nvidia.com/L40S
node n2 l40s=1 cpu=8
  places vm2 on n2 for vm2-pod
