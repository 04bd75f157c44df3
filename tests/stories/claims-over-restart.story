# T10, T11: a restart keeps what is held and who waits; a new leader binds nothing until its watches have gone on.
class l40s
node n1 l40s=1 cpu=8
claim a l40s=1
  puts claim a on n1: Ordered
claim b l40s=1
  claim b waits: NoRoom
restart
show a b
  a is on n1
  b is pending: NoRoom
epoch
gone claim a
progress
  puts claim b on n1: Ordered
show b
  b is on n1
