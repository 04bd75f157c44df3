# D10, T14: a claim is of the VM that holds it, else of the oldest that names it; another one naming it waits.
class l40s
node n1 l40s=6 cpu=8
claim mine l40s=1
  puts claim mine on n1: Ordered
vm young uses=mine created=7
vm old uses=mine created=5
start young uses=mine
  young waits: ClaimInUse
start old uses=mine
  opens old: l40s x1 by nvidia.com/L40S
  places old on n1 for old-pod
show mine n1
  mine is on n1, of old
  n1 has free: cpu 7000, nvidia.com/L40S 5
# The younger one has it where it is, once nothing is left of the older one.
pin old-pod n1
gone vm old
end old-pod
  releases old from n1: LauncherEnded
gone vmi old
  closes old
  opens young: l40s x1 by nvidia.com/L40S
  places young on n1 for young-pod
show mine
  mine is on n1, of young
# Whoever names no claim of its own stays behind the gate: what was there at admission may be gone since.
claim other l40s=1
  puts claim other on n1: Ordered
vmi late uses=other
admit late r-late
  admits the launcher of late as r-late, gated
pod late-pod of late stamp=r-late
claim other l40s=1 deleting
  frees claim other (uid-other)
list late late-pod
  late waits: ClaimNotFound
gone claim other
# A template claim of that name can't be used; the tenant's next order can, and is another one.
start own l40s=1
  opens own: l40s x1 by nvidia.com/L40S
  places own on n1 for own-pod
claim other of own class=l40s uid=stray
  drops claim other (stray)
gone claim other
claim other l40s=2 uid=new
  opens late: l40s x2 by nvidia.com/L40S
  late waits: RequestsMismatch
admit late r-again
  admits the launcher of late as r-again, gated
pod late-again of late stamp=r-again
list late late-again
  places late on n1 for late-again
show other late n1
  other is on n1, of late
  late is on n1
  n1 has free: cpu 5000, nvidia.com/L40S 2
