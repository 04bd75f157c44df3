# T11: a new leader places nothing before every watch has moved on since it began.
class l40s
node n1 l40s=1 cpu=8
epoch
start vm1 l40s=1
show placing
  places: no
progress
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
show placing
  places: yes
