# T25, C35: the launcher after a temporary pod runs before its VMI lists it: the booking is kept for it.
class l40s
node n1 l40s=1 cpu=8
node n2 l40s=1 cpu=8
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
store vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
claims vm1 on=n1
launch probe of vm1 temporary
  admits the launcher of vm1 as a2, pinned to n1
pin probe n1
list vm1 probe
launch vm1-pod of vm1
  admits the launcher of vm1 as a3, pinned to n1
end probe
gone pod probe
phase vm1 Running
pin vm1-pod n1
list vm1 vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
end vm1-pod
  releases vm1 from n1: LauncherEnded
