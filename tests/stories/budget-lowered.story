# B3: a budget lowered below its use takes nothing, and gives nothing new of that key alone.
class l40s
class h100
node n1 l40s=8 h100=8 cpu=64
start vm1 l40s=3
  opens vm1: l40s x3 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
budget b l40s=1
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: OverBudget, b allows 1 l40s, 4 are held, 1 asked
start vm4 h100=1
  opens vm4: h100 x1 by nvidia.com/H100
  places vm4 on n1 for vm4-pod
end vm2-pod
  releases vm2 from n1: LauncherEnded
show n1
  n1 has free: cpu 62000, nvidia.com/H100 7, nvidia.com/L40S 5
end vm1-pod
  releases vm1 from n1: LauncherEnded
  places vm3 on n1 for vm3-pod
# Zero is a limit, and no key is none.
budget b l40s=0
start vm5 l40s=1
  opens vm5: l40s x1 by nvidia.com/L40S
  vm5 waits: OverBudget, b allows 0 l40s, 1 are held, 1 asked
budget b h100=1
  places vm5 on n1 for vm5-pod
