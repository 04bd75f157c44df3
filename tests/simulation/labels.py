"""The names of the simulated cluster: its tenants, devices, zones and taints."""

SYSTEM = "gpubinder-system"
KUBEVIRT_NAMESPACE = "kubevirt"
TENANTS = ("tenant-a", "tenant-b")
CARD = "nvidia.com/AD102GL_L40S"
SLICE = "nvidia.com/NVIDIA_L40S-24C"
OTHER_NAME = "nvidia.com/GRID_L40S"
CLASSES = {"card": CARD, "slice": SLICE}
TAINT_KEY = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b")
