# T25: the temporary pod of a volume lands where the set is booked, and the launcher after it shares its booking.
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
list vm1 probe vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
end probe
gone pod probe
pin vm1-pod n1
ask vm2 l40s=2
  refuses vm2: NoNodeOffersClass
end vm1-pod
  releases vm1 from n1: LauncherEnded
