"""The names of the simulated cluster: its tenants, devices, zones and taints."""

SYSTEM = "gpubinder-system"
KUBEVIRT_NAMESPACE = "kubevirt"
TENANTS = ("tenant-a", "tenant-a-b")
"""Where VMs are: the second is below the first, and both below the root."""
ROOT = "tenant-root"
LEVELS = (ROOT, *TENANTS)
CARD = "nvidia.com/AD102GL_L40S"
SLICE = "nvidia.com/NVIDIA_L40S-24C"
OTHER_NAME = "nvidia.com/GRID_L40S"
DEVICES = (CARD, SLICE, OTHER_NAME)
CLASSES = {"card": CARD, "slice": SLICE}
TWIN = "twin"
"""A class that somebody makes under the resource name of another."""
LICENSED = "slice"
LICENCE = "licence"
COPY = "gpu-licence-slice"
"""The class that may need a licence, the hoster's Secret, and what its copies are called."""
TAINT_KEY = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b")
