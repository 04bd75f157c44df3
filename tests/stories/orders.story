# O1: an order is refused now, with the numbers, where it can't be met.
class l40s most=4
class old deleting
  frees class old
class twin conflict
class slice mode=VGPU most=2
node n1 l40s=3 slice=2 cpu=64
node n2 l40s=2 cpu=64
order c ghost=1
  refused, ClassNotFound: the GPU class "ghost" does not exist: choose one that `kubectl get gpuclasses` lists
order c old=1
  refused, ClassBeingDeleted: the GPU class "old" is being deleted: choose another class
order c twin=1
  refused, ResourceNameConflict: the resource name nvidia.com/TWIN of the GPU class "twin" belongs to an older class (ResourceNameConflict): choose that class, or ask the platform operator to give this one a resource name of its own
order c slice=1 unentitled
  refused, NoVGPUEntitlement: the GPU class "slice" is asked for, a class of vGPUs, which namespace t may not have: its label cozystack.io/vgpu is not "true"; choose a class of whole GPUs, or ask the platform operator for the label
order c slice=1
  may be
order c l40s=5
  refused, OverMaximumCount: 5 units of the GPU class "l40s" are asked, of which one claim can have 4 at most: lower spec.count
order c l40s=4
  refused, NotEnoughUnits: 4 units of the GPU class "l40s" are asked on one node, 5 are free now, 3 at most on one node: ask for fewer, or try again later
order c l40s=3
  may be
start vm l40s=2
  opens vm: l40s x2 by nvidia.com/L40S
  places vm on n2 for vm-pod
order c l40s=3
  may be
order c l40s=2
  may be
order c l40s=3
  may be
# A node that is cordoned has nothing to give.
node n2 l40s=2 cpu=64 cordoned
order c l40s=2
  may be
budget b l40s=2
order c l40s=1
  refused, OverBudget: budget of t: gpus.cozystack.io/l40s is limited to 2, 2 are declared, 1 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
budget b total=2
order c l40s=1
  refused, OverBudget: budget of t: gpus.cozystack.io is limited to 2, 2 are declared, 1 more are asked; delete VMs, pools or claims there that declare some, or have the budget raised
gone budget b
