# T11, D5: while placing is paused a start waits for its answer, and is decided when it goes on; who gives up is forgotten.
class l40s
node n1 l40s=2 cpu=8
settings paused=true
ask vm1 l40s=1 request=r1
  vm1 is not decided yet: Paused
ask vm2 l40s=1 request=r2
  vm2 is not decided yet: Paused
ask vm3 ghost=1
  refuses vm3: ClassNotFound
withdraw vm1 r1
settings paused=false
  books vm2 on n1 for r2: l40s x1 by nvidia.com/L40S
settings paused=true
ask vm4 l40s=1
  vm4 is not decided yet: Paused
tick 30
tick 30
settings paused=false
