# D4: the node is one that selector and required affinity accept; terms are ORed, all of a term must hold.
class l40s
node n1 l40s=1 cpu=8 label=zone:a label=gen:7
node n2 l40s=1 cpu=8 label=zone:b label=gen:8
node n3 l40s=1 cpu=8 label=zone:c
start two-terms l40s=1 affinity=zone:In:z affinity=zone:In:b&gen:Gt:7
  opens two-terms: l40s x1 by nvidia.com/L40S
  places two-terms on n2 for two-terms-pod if zone:In:z or zone:In:b&gen:Gt:7
start by-field l40s=1 affinity=@metadata.name:In:n3
  opens by-field: l40s x1 by nvidia.com/L40S
  places by-field on n3 for by-field-pod if @metadata.name:In:n3
start empty-term l40s=1 affinity=
  opens empty-term: l40s x1 by nvidia.com/L40S
  empty-term waits: NodeAffinityMismatch
start not-in l40s=1 affinity=zone:NotIn:a,b
  opens not-in: l40s x1 by nvidia.com/L40S
  not-in waits: NoRoom
start selector l40s=1 selector=zone:a
  opens selector: l40s x1 by nvidia.com/L40S
  places selector on n1 for selector-pod
# A label that changes wakes whom it concerns.
node n4 l40s=1 cpu=8
  places not-in on n4 for not-in-pod if zone:NotIn:a,b
