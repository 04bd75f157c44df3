# T5: one input binds a fixed number of claims; what is left stays dirty and goes on with a Continue.
class l40s
node n1 l40s=100 cpu=200
orders 200 l40s=1
  64 HeldPlaced
show left
  left to look at: something
continue
  36 HeldPlaced
  28 HeldWaits
show left
  left to look at: something
continue
  64 HeldWaits
continue
  8 HeldWaits
continue
show left n1
  left to look at: nothing
  n1 has free: cpu 200000, nvidia.com/L40S 0
