# T24: a set counts by the resource name it was opened under, also after the class is edited or gone.
class l40s
node n1 l40s=1 new=1 cpu=8
start holder l40s=1
  opens holder: l40s x1 by nvidia.com/L40S
  places holder on n1 for holder-pod
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: NoRoom
class l40s resource=new
restart
end holder-pod
  releases holder from n1: LauncherEnded
  places vm1 on n1 for vm1-pod
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/NEW
  places vm2 on n1 for vm2-pod
start vm3 l40s=1 new=1 nvidia.com/L40S=0
  opens vm3: l40s x1 by nvidia.com/NEW
  vm3 waits: NoRoom
gone class l40s
  vm3 waits: ClassNotFound
end vm2-pod
  releases vm2 from n1: LauncherEnded
class l40s resource=new
  places vm3 on n1 for vm3-pod
