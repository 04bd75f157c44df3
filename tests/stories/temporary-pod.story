# T25, P3: the temporary pod that binds volumes and the launcher after it share one booking.
class l40s
node n1 l40s=2 cpu=8
pvc disk
vmi vm1 l40s=1 volume=disk
admit vm1 first
  admits the launcher of vm1 as first, gated
pod temp of vm1 stamp=first temporary
list vm1 temp
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for temp
pin temp n1
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 1
admit vm1 second
  admits the launcher of vm1 as second, gated
pod vm1-pod of vm1 stamp=second
list vm1 temp vm1-pod
  places vm1 on n1 for vm1-pod
# Both stand there for a moment, and use one unit.
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 1
end temp
gone pod temp
pin vm1-pod n1
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 1
phase vm1 Running
end vm1-pod
  releases vm1 from n1: LauncherEnded
# A temporary pod that ends before its launcher comes keeps the booking; not so when the VMI goes.
vmi vm2 l40s=1
admit vm2 third
  admits the launcher of vm2 as third, gated
pod temp2 of vm2 stamp=third temporary
list vm2 temp2
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for temp2
pin temp2 n1
gone pod temp2
show n1
  n1 has free: cpu 7000, nvidia.com/L40S 1
gone vmi vm2
  releases vm2 from n1: LauncherGone
  closes vm2
