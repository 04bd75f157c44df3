# T25: a launcher that asks for something else than its temporary pod does not get the booking.
class l40s
node n1 l40s=2 cpu=8
vmi vm1 l40s=1
admit vm1 first
  admits the launcher of vm1 as first, gated
pod temp of vm1 stamp=first temporary
list vm1 temp
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for temp
admit vm1 second
  admits the launcher of vm1 as second, gated
pod vm1-pod of vm1 stamp=second nvidia.com/L40S=2
list vm1 temp vm1-pod
  releases vm1 from n1: LauncherChanged
  vm1 waits: RequestsMismatch
