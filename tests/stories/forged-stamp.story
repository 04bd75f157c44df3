# T25, D11: a pod that was not admitted, or carries a stamp that another pod carries too, is nobody's launcher.
class l40s
node n1 l40s=2 cpu=8
vmi vm1 l40s=1
pod forged of vm1 stamp=guessed
list vm1 forged
  vm1 waits: NoLauncher
admit vm1 real
  admits the launcher of vm1 as real, gated
pod launcher of vm1 stamp=real
list vm1 forged launcher
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for launcher
vmi vm2 l40s=1
admit vm2 right
  admits the launcher of vm2 as right, gated
pod own of vm2 stamp=right
pod copy of vm2 stamp=right
list vm2 own
  vm2 waits: NoLauncher
gone pod copy
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for own
