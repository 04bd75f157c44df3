# D5, C59: where a class makes a resource count, or no class does any more, every launcher that requests it is judged anew.
class l40s
node n1 cpu=8
start vm1 l40s=1 nvidia.com/EXTRA=1
  opens vm1: l40s x1 by nvidia.com/L40S
  vm1 waits: NoNodeOffersClass
class extra
  vm1 waits: RequestsMismatch
gone class extra
  vm1 waits: NoNodeOffersClass
