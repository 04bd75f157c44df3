# D8: a booking whose launcher still stands behind our gate is released when its node can't keep it, and gathered again.
class l40s
node n1 l40s=2 cpu=8
start vm1 l40s=2
  opens vm1: l40s x2 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
gone node n1
node n2 l40s=2 cpu=8
show troubles
  n1: gone
pass 59
pass 1
  releases vm1 from n1: NodeCannotKeep
  places vm1 on n2 for vm1-pod
gone node n2
pass 60
  releases vm1 from n2: NodeCannotKeep
  vm1 waits: NoNodeOffersClass
show vm1
  vm1 waits: NoNodeOffersClass
node n3 l40s=2 cpu=8
  places vm1 on n3 for vm1-pod
# While placing is paused everything stays where it is.
settings paused=true
node n3 l40s=2 cpu=8 taint=dead:NoExecute
node n4 l40s=2 cpu=8
pass 600
settings paused=false
  releases vm1 from n3: NodeCannotKeep
  places vm1 on n4 for vm1-pod
# A pin that has landed is no more taken back, though the watch has not shown it yet.
outcome vm1 pin 0
gone node n4
pass 600
command release vm1
  refuses release: the launcher of VM t/vm1 runs on node n4, or may run: stop or restart the VM
pin vm1-pod
  gives up vm1 on n4: NodeGone
