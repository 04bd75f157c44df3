# C30: what a VM merely asks for at each start goes to who waits when it stops; its next start waits, and is not refused.
class l40s
node n1 l40s=1 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
pin vm1-pod n1
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
end vm1-pod
  releases vm1 from n1: LauncherEnded
  places vm2 on n1 for vm2-pod
gone vmi vm1
  closes vm1
gone pod vm1-pod
start vm1 l40s=1 uid=again pod=again
  opens vm1 (again): l40s x1 by nvidia.com/L40S
  vm1 (again) waits: NoRoom
# One that waits keeps its turn over any number of launchers, and nothing is left of those that are gone.
gone pod again
gone vmi vm1
  closes vm1 (again)
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: NoRoom
start vm1 l40s=1 uid=third pod=third
  opens vm1 (third): l40s x1 by nvidia.com/L40S
  vm1 (third) waits: NoRoom
end vm2-pod
  releases vm2 from n1: LauncherEnded
  places vm1 (third) on n1 for third
show n1 vm1 vm3
  n1 has free: cpu 7000, nvidia.com/L40S 0
  vm1 is on n1
  vm3 waits: NoRoom
