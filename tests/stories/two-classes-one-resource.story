# C54: two classes that count by one resource share its units, in one set and between sets.
class l40s
class cheap resource=l40s
node n1 l40s=2 cpu=8
node n2 l40s=3 cpu=8
start both l40s=1 cheap=2
  opens both: l40s x1 by nvidia.com/L40S, cheap x2 by nvidia.com/L40S
  places both on n2 for both-pod
start one cheap=1
  opens one: cheap x1 by nvidia.com/L40S
  places one on n1 for one-pod
show n1 n2
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
# A class that is edited to count by it, too, brings no unit, and takes none from what runs.
class edited resource=other
class edited resource=l40s
show n1 n2 both
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
  both is on n2
start more edited=2
  opens more: edited x2 by nvidia.com/L40S
  more waits: NoRoom
gone class cheap
show n1 n2 both one more
  n1 has free: cpu 7000, nvidia.com/L40S 1
  n2 has free: cpu 7000, nvidia.com/L40S 0
  both is on n2
  one is on n1
  more waits: NoRoom
