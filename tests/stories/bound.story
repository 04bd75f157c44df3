# T5: one input decides a fixed number of sets; what is left stays dirty and goes on with a Continue.
class l40s
node n1 l40s=100 cpu=200
crowd 150 l40s=1
  64 SetOpened
  64 SetPlaced
show left
  left to look at: something
continue
  64 SetOpened
  36 SetPlaced
  28 SetWaits
show left
  left to look at: something
continue
  22 SetOpened
  22 SetWaits
show left
  left to look at: nothing
continue
show left n1
  left to look at: nothing
  n1 has free: cpu 100000, nvidia.com/L40S 0
