# T18: who gives up waiting says so, and its units are free at once; once the VMI is there, that says nothing.
class l40s
node n1 l40s=1 cpu=8
ask vm1 l40s=1 request=r1
  books vm1 on n1 for r1: l40s x1 by nvidia.com/L40S
withdraw vm1 r0
withdraw vm1 r1
  releases vm1 from n1: RequestWithdrawn
  closes vm1
ask vm2 l40s=1 request=r2
  books vm2 on n1 for r2: l40s x1 by nvidia.com/L40S
store vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
withdraw vm2 r2
ask vm3 l40s=1
  refuses vm3: NoRoom
