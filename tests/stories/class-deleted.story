# C23, K2: a class carries our finalizer, and goes when no claim is seen and no set holds one; also with placing off.
class l40s bare
  guards class l40s
# Said once, until the class is seen changed.
node n1 l40s=2 cpu=8
class l40s
class l40s bare
  guards class l40s
class l40s
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
claim mine l40s=1
  puts claim mine on n1: Ordered
class l40s deleting
settings enabled=false
end vm1-pod
  releases vm1 from n1: LauncherEnded
gone pod vm1-pod
gone claim mine
restart
gone vmi vm1
  closes vm1
  frees class l40s
# Said once, also by another leader.
restart
epoch
progress
gone class l40s
# Under the same name it is another one.
class l40s bare
  guards class l40s
gone class l40s
class a16
claim other a16=1
  claim other waits: Paused
gone claim other
class a16 deleting
  frees class a16
