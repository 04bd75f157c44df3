# T4: a pin without a node is believed, a claim whose units running launchers have is Lost and bound elsewhere, a launcher that requests something else is counted as it stands.
class l40s
class h100
node n1 l40s=2 cpu=8
node n2 l40s=2 cpu=8
node n3 h100=1 cpu=8
claim older l40s=1 created=1
claim taken l40s=2 created=2
claim gone h100=1 created=3
start pinned l40s=1
retarget pinned-pod affinity=@metadata.name:In:n2
pin pinned-pod
start temp h100=1 created=5
show pinned temp older taken gone
shown older n1
shown taken n2
adopt
continue
show pinned temp older taken gone n1 n2 n3
