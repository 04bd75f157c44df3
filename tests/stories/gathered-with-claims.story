# D3, D10: a set is gathered whole on one node, where its held claims are if they can stay, else wherever all fit.
class l40s
class h100
node n1 l40s=3 h100=1 cpu=8
node n2 l40s=2 cpu=8
claim mine l40s=1 created=1
  puts claim mine on n2: Ordered
claim more l40s=1 created=2
  puts claim more on n2: Ordered
show mine more
  mine is on n2
  more is on n2
# n2 is the fullest and has the claims; their units count as free for their own VM there.
vm vm1 uses=mine uses=more
start vm1 uses=mine uses=more
  opens vm1: l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 on n2 for vm1-pod
end vm1-pod
  releases vm1 from n2: LauncherEnded
gone vmi vm1
  closes vm1
show mine more n1 n2
  mine is on n2
  more is on n2
  n1 has free: cpu 8000, nvidia.com/H100 1, nvidia.com/L40S 3
  n2 has free: cpu 8000, nvidia.com/L40S 0
# With a unit more there is no place on n2: all of it goes to n1, and n2 is free for others.
start vm1 l40s=1 uses=mine uses=more uid=again pod=again
  opens vm1 (again): l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 (again) on n1 for again
show mine more n1 n2
  mine is on n1, of vm1
  more is on n1, of vm1
  n1 has free: cpu 7000, nvidia.com/H100 1, nvidia.com/L40S 0
  n2 has free: cpu 8000, nvidia.com/L40S 2
end again
  releases vm1 (again) from n1: LauncherEnded
gone vmi vm1
  closes vm1 (again)
# The claims stay where they were; what the VM asks of its launcher decides with them.
start vm1 h100=1 uses=mine uses=more uid=third pod=third
  opens vm1 (third): h100 x1 by nvidia.com/H100, l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  places vm1 (third) on n1 for third
pin third n1
show n1 mine
  n1 has free: cpu 7000, nvidia.com/H100 0, nvidia.com/L40S 1
  mine is on n1, of vm1
# A launcher that asks for other units than the set has is not let go.
end third
  releases vm1 (third) from n1: LauncherEnded
gone vmi vm1
  closes vm1 (third)
start vm1 uses=mine uses=more uid=fourth pod=fourth nvidia.com/L40S=3
  opens vm1 (fourth): l40s x1 by nvidia.com/L40S, l40s x1 by nvidia.com/L40S
  vm1 (fourth) waits: RequestsMismatch
