# T5, T10: what a bounded input left over is part of the state.
class l40s
node n1 l40s=100 cpu=200
crowd 70 l40s=1
  64 SetOpened
  64 SetPlaced
restart
show left
  left to look at: something
tick 1
  opens crowd064: l40s x1 by nvidia.com/L40S
  places crowd064 on n1 for crowd064-pod
  opens crowd065: l40s x1 by nvidia.com/L40S
  places crowd065 on n1 for crowd065-pod
  opens crowd066: l40s x1 by nvidia.com/L40S
  places crowd066 on n1 for crowd066-pod
  opens crowd067: l40s x1 by nvidia.com/L40S
  places crowd067 on n1 for crowd067-pod
  opens crowd068: l40s x1 by nvidia.com/L40S
  places crowd068 on n1 for crowd068-pod
  opens crowd069: l40s x1 by nvidia.com/L40S
  places crowd069 on n1 for crowd069-pod
show left
  left to look at: nothing
