# T11: a version older than the known one changes nothing, whoever delivers it.
class l40s
node n1 l40s=1 cpu=8
older node n1 l40s=8 cpu=8
show n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
relist node
older node n1 l40s=8 cpu=8
show n1
  n1 has free: cpu 8000, nvidia.com/L40S 1
