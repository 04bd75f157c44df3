# T23: an order whose place can't be written gives it back, and is tried again later and later; what shows its units keeps them.
class l40s
node n1 l40s=1 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
confirm mine 422 older
  not confirmed
confirm mine 422
  not confirmed
  loses claim mine on n1: WriteRefused
  claim mine waits: WriteRefused
show mine n1
  mine is lost, WriteRefused: WriteRefused
  n1 has free: cpu 8000, nvidia.com/L40S 1
tick 1
tick 1
  puts claim mine on n1: Rebound
confirm mine 403
  not confirmed
  loses claim mine on n1: WriteRefused
  claim mine waits: WriteRefused
tick 1
tick 1
# Others use the unit meanwhile.
claim other l40s=1
  puts claim other on n1: Ordered
tick 2
  claim mine waits: NoRoom
show mine other
  mine is lost, WriteRefused: NoRoom
  other is on n1
confirm mine 0
  confirmed
shown other n1
confirm other 422
  not confirmed
show other
  other is on n1
# While placing is paused nothing is given back.
gone claim other
  puts claim mine on n1: Rebound
settings paused=true
confirm mine 422
  not confirmed
settings paused=false
  loses claim mine on n1: WriteRefused
  claim mine waits: WriteRefused
tick 20
  puts claim mine on n1: Rebound
