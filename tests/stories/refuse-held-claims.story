# A12: held claims that a VMI names are in its set from its admission on: nobody else gets them meanwhile.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=1 cpu=8
claim mine l40s=1
  puts claim mine on n2: Ordered
vm vm1 l40s=1 uses=mine created=1
vm vm2 uses=mine created=2
ask vm2 uses=mine
  refuses vm2: ClaimInUse
ask vm1 l40s=1 uses=mine
  books vm1 on n1 for a2: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
ask vm2 uses=mine uid=again
  refuses vm2: ClaimInUse
start vm2 uses=mine
  vm2 waits: ClaimInUse
store vm1 l40s=1 uses=mine
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
launch vm1-pod of vm1
  admits the launcher of vm1 as a5, pinned to n1
list vm1 vm1-pod
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone vmi vm1
  closes vm1
gone vm vm1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
