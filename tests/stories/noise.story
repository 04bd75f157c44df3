# C59: a reason is told once; heartbeats, passes, restarts and numbers that change tell nothing.
class l40s
node n1 l40s=1 cpu=8
raw other n1 l40s=1
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: NoRoom
start vm2 l40s=2
  opens vm2: l40s x2 by nvidia.com/L40S
  vm2 waits: NoNodeOffersClass
tick 5
node n1 l40s=1 cpu=9
progress
restart
tick 5
continue
# One unit comes and goes, and it is no use to who wants two.
node n1 l40s=1 cpu=8 taint=gpu=own:NoSchedule
  vm1 waits: TaintNotTolerated
node n1 l40s=1 cpu=8
  vm1 waits: NoRoom
relist all
