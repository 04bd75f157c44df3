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
# What goes together is brought together when placing goes on.
node n2 l40s=2 cpu=8
claim third l40s=2
  puts claim third on n2: Ordered
show third n1
  third is on n2
  n1 has free: cpu 8000, nvidia.com/L40S 1
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
vm vm1 uses=first uses=third
show first third
  first is on n1
  third is on n2
command resume
  does resume: placing goes on
  loses claim first, third on n1: NoNodeForAll
  claim first, third waits: NoRoom
show first third
  first is lost, NoNodeForAll: NoRoom
  third is lost, NoNodeForAll: NoRoom
