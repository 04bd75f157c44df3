# D5: while placing is paused no order is bound, and it is told so; what is bound stays.
class l40s
node n1 l40s=3 cpu=8
claim first l40s=1
  puts claim first on n1: Ordered
settings paused=true
claim second l40s=1
  claim second waits: Paused
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
settings paused=false
command resume
  does resume: placing goes on
  puts claim second on n1: Ordered
show first second
  first is on n1
  second is on n1
