# C40: where a node offers fewer units than are used, only as many bookings are let go as it takes.
class l40s
class a16
node n1 l40s=8 a16=2 cpu=16
start vm3 l40s=4
  opens vm3: l40s x4 by nvidia.com/L40S
  places vm3 on n1 for vm3-pod
pin vm3-pod n1
run vm3-pod
phase vm3 Running
start vm1 l40s=1 created=10
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
start vm2 l40s=1 created=20
  opens vm2: l40s x1 by nvidia.com/L40S
  places vm2 on n1 for vm2-pod
start vm4 l40s=1 created=30
  opens vm4: l40s x1 by nvidia.com/L40S
  places vm4 on n1 for vm4-pod
start vm5 a16=1 created=40
  opens vm5: a16 x1 by nvidia.com/A16
  places vm5 on n1 for vm5-pod
pin vm1-pod
pin vm2-pod
pin vm5-pod
node n1 l40s=6 a16=2 cpu=16
show troubles
  n1: short:nvidia.com/L40S=1
pass 299
# While more go, the time begins anew.
node n1 l40s=5 a16=2 cpu=16
pass 299
node n1 l40s=6 a16=2 cpu=16 label=edited:yes
show troubles
  n1: short:nvidia.com/L40S=1
# A booking whose launcher was not let go ends first.
pass 1
  releases vm4 from n1: NodeCannotKeep
  vm4 waits: NoRoom
node n1 l40s=6 a16=2 cpu=16 label=edited:twice
show n1
  n1 has free: cpu 12000, nvidia.com/A16 1, nvidia.com/L40S 0
node n1 l40s=5 a16=2 cpu=16
# Then, of those that are pinned and don't run, the youngest VMI.
pass 300
  gives up vm2 on n1: UnitsGone
node n1 l40s=5 a16=2 cpu=16 label=edited:again
node n1 l40s=4 a16=2 cpu=16
pass 299
gone pod vm2-pod
  releases vm2 from n1: LauncherGone
gone vmi vm2
  closes vm2
show n1
  n1 has free: cpu 13000, nvidia.com/A16 1, nvidia.com/L40S -1
pass 1
  gives up vm1 on n1: UnitsGone
  keeps n1 for vm4
gone pod vm1-pod
  releases vm1 from n1: LauncherGone
gone vmi vm1
  closes vm1
show n1 troubles
  n1 has free: cpu 14000, nvidia.com/A16 1, nvidia.com/L40S 0
  no node is in trouble
start vm6 l40s=1
  opens vm6: l40s x1 by nvidia.com/L40S
  vm6 waits: NoRoom
node n1 l40s=3 a16=2 cpu=16
pass 900
