# C30, D6: what a stopped VM had by template claims goes to who waits; started again it waits, it is not refused.
class l40s
node n1 l40s=1 cpu=8
vm vm1 l40s=1
vm vm2 l40s=1
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
# A gated pod and a VMI that come again keep the turn of the VM; nothing is left of the dead ones.
tick 5
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: NoRoom
gone pod again
gone vmi vm1
  closes vm1 (again)
start vm1 l40s=1 uid=third pod=third
  opens vm1 (third): l40s x1 by nvidia.com/L40S
  vm1 (third) waits: NoRoom
gone pod third
gone vmi vm1
  closes vm1 (third)
start vm1 l40s=1 uid=fourth pod=fourth
  opens vm1 (fourth): l40s x1 by nvidia.com/L40S
  vm1 (fourth) waits: NoRoom
end vm2-pod
  releases vm2 from n1: LauncherEnded
  places vm1 (fourth) on n1 for fourth
show vm1 vm3 n1
  vm1 is on n1
  vm3 waits: NoRoom
  n1 has free: cpu 7000, nvidia.com/L40S 0
