# T4, T25: a VM that is migrating when the log is lost has its source's booking, and then its target's; one that has migrated, its target's.
class l40s
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
claims vm1 on=n1
admit vm1 m1
  admits the launcher of vm1 as m1, gated
pod vm1-target of vm1 stamp=m1 migration bare
list vm1 vm1-pod vm1-target
pin vm1-target n2
show vm1 n1 n2
  vm1 is on n1, pinned
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 1
adopt
  takes over the launcher of vm1: m1
  takes over vm1 on n1 with vm1-pod: l40s x1 by nvidia.com/L40S
  has taken over 1 sets, 0 claims
continue
show vm1 n1 n2
  vm1 is on n1, pinned
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 1
end vm1-pod
  opens vm1: l40s x1 by nvidia.com/L40S
continue
show vm1 n1 n2
  vm1 is on n2, pinned
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 7000, nvidia.com/L40S 1
gone pod vm1-pod
list vm1 vm1-target
adopt
  takes over the launcher of vm1: m1
  takes over vm1 on n2 with vm1-target: l40s x1 by nvidia.com/L40S
  has taken over 1 sets, 0 claims
continue
show vm1 n1 n2
  vm1 is on n2, pinned
  n1 has free: cpu 8000, nvidia.com/L40S 2
  n2 has free: cpu 7000, nvidia.com/L40S 1
