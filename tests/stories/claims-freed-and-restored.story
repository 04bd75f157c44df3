# T12, F1: a claim that was freed is freed once more, or held again, as a server back from a backup shows it.
class l40s
node n1 l40s=2 cpu=8
claim going l40s=1
  puts claim going on n1: Ordered
claim back l40s=1
  puts claim back on n1: Ordered
claim going l40s=1 deleting
  frees claim going (uid-going)
claim back l40s=1 deleting
  frees claim back (uid-back)
written going
written back
show going back n1
  going is freed
  back is freed
  n1 has free: cpu 8000, nvidia.com/L40S 2
# Of the one the deletion stands, and our finalizer may be on it again; of the other it is undone.
open claim rewound
claim going l40s=1 deleting
claim back l40s=1
list-until claim 900
  frees claim going (uid-going)
  puts claim back on n1: Ordered
show going back n1
  going is freed
  back is on n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
# What is back is a claim like any other.
vm vm1 uses=back
start vm1 uses=back
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
restart
gone claim going
claim back l40s=1 deleting
end vm1-pod
  releases vm1 from n1: LauncherEnded
  frees claim back (uid-back)
show back n1
  back is freed
  n1 has free: cpu 8000, nvidia.com/L40S 2
