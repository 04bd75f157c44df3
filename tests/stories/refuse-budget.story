# B3, A12: a start that a budget has no units for is refused, and what is booked at admission counts at once.
class l40s
node n1 l40s=4 cpu=8
budget gpus l40s=1
ask vm1 l40s=1
  books vm1 on n1 for a1: l40s x1 by nvidia.com/L40S
ask vm2 l40s=1
  refuses vm2: OverBudget
withdraw vm1 a1
  releases vm1 from n1: RequestWithdrawn
  closes vm1
ask vm2 l40s=1 uid=again
  books vm2 (again) on n1 for a3: l40s x1 by nvidia.com/L40S
