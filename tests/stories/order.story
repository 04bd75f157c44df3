# D6: the queue goes by priority class, then by the VM's first wait, then by name; and a place in it outlives its VMI.
class l40s
node n1 l40s=1 cpu=64
start holder l40s=1
  opens holder: l40s x1 by nvidia.com/L40S
  places holder on n1 for holder-pod
pin holder-pod n1
start b-first l40s=1
  opens b-first: l40s x1 by nvidia.com/L40S
  b-first waits: NoRoom
tick 5
start a-second l40s=1
  opens a-second: l40s x1 by nvidia.com/L40S
  a-second waits: NoRoom
tick 5
start z-urgent l40s=1 priority=1000
  opens z-urgent: l40s x1 by nvidia.com/L40S
  z-urgent waits: NoRoom
end holder-pod
  releases holder from n1: LauncherEnded
  places z-urgent on n1 for z-urgent-pod
pin z-urgent-pod n1
# The first one is stopped and started again: same name, new VMI, same place in the queue.
vm b-first
gone vmi b-first
  closes b-first
gone pod b-first-pod
start b-first l40s=1 uid=second pod=b-first-again
  opens b-first (second): l40s x1 by nvidia.com/L40S
  b-first (second) waits: NoRoom
end z-urgent-pod
  releases z-urgent from n1: LauncherEnded
  places b-first (second) on n1 for b-first-again
pin b-first-again n1
end b-first-again
  releases b-first (second) from n1: LauncherEnded
  places a-second on n1 for a-second-pod
