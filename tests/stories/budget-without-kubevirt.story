# C61, B3: where KubeVirt is not served, an order that waited for a budget is bound as soon as the budget allows it.
class l40s
node n1 l40s=4 cpu=8
budget b total=1
claim one l40s=2
  claim one waits: OverBudget, b allows 1 gpus.cozystack.io, 0 are held, 2 asked
unserved vm
show one
  one is pending: OverBudget
gone budget b
  puts claim one on n1: Ordered
show one n1
  one is on n1
  n1 has free: cpu 8000, nvidia.com/L40S 2
