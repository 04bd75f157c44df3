# T23: a pin that is refused gives the node back and is tried again later and later, not at stream speed.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
outcome vm1 pin 422 Invalid older
outcome vm1 pin 422 Invalid
  releases vm1 from n1: PinRefused
  vm1 waits: WriteRefused
show n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
tick 1
tick 1
  places vm1 on n1 for vm1-pod
outcome vm1 pin 422 Invalid
  releases vm1 from n1: PinRefused
  vm1 waits: WriteRefused
tick 2
tick 2
  places vm1 on n1 for vm1-pod
# Others use the unit meanwhile.
outcome vm1 pin 403 Forbidden
  releases vm1 from n1: PinRefused
  vm1 waits: WriteRefused
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
tick 20
  vm1 waits: NoRoom
end vm2-pod
  releases vm2 from n1: LauncherEnded
  places vm1 on n1 for vm1-pod
# One that landed is forgiven.
pin vm1-pod n1
outcome vm1 set 0
show vm1
  vm1 is on n1, pinned
