# A12, A3: what has no place is refused with the reason of the node that came nearest, and leaves no trace.
class l40s
class a100
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=2 label=zone:b
ask vm1 l40s=3
  refuses vm1: NoNodeOffersClass
ask vm1 a100=1
  refuses vm1: NoNodeOffersClass
ask vm1 ghost=1
  refuses vm1: ClassNotFound
ask vm1 l40s=1 cpu=9
  refuses vm1: NoRoomForOtherResources
ask vm1 l40s=1 selector=zone:c
  refuses vm1: NodeAffinityMismatch
ask vm1 l40s=1 affinity=zone:In:c
  refuses vm1: NodeAffinityMismatch
ask vm1 l40s=1 volume=data
  refuses vm1: VolumeNotFound
ask vm1 l40s=1 incomplete
  refuses vm1: GPUEntriesIncomplete
ask vm1 l40s=2 incomplete
  refuses vm1: ReservedMark
ask vm1 l40s=1 annotation=[
  refuses vm1: MalformedAnnotation
node n1 l40s=2 cpu=8 cordoned
node n2 l40s=2 cpu=2 cordoned
ask vm1 l40s=1
  refuses vm1: NodeNotReady
