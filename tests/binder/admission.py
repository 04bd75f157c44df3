"""Admission requests for tests: a VMI and a launcher that pass, to be spoiled."""

import msgspec

from schemas.decisions import VmiId
from schemas.events import PodRequest, VmiRequest
from schemas.objects import ClassView, Toleration

CARD = "nvidia.com/AD102GL_L40S"
VGPU = "nvidia.com/NVIDIA_L40S-24C"
GPU_TAINT = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
PARTITION = Toleration(key="partition", value="gpu")

L40S = ClassView("l40s", "c1", "1", resource=CARD, mode="Passthrough", tolerations=(GPU_TAINT,), created=10)
L40S_24C = ClassView(
    "l40s-24c", "c2", "2", resource=VGPU, mode="VGPU", max_count=2, tolerations=(GPU_TAINT, PARTITION), created=20
)
L40S_48C = ClassView("l40s-48c", "c3", "3", resource="nvidia.com/NVIDIA_L40S-48C", mode="VGPU", created=30)
CLASSES = (L40S, L40S_24C, L40S_48C)

VMI = VmiRequest("r1", "tenant-a", "vm1", "someone", '[{"className":"l40s","count":2}]', classes=CLASSES)
KUBEVIRT = "system:serviceaccount:cozy-kubevirt:kubevirt-controller"
POD = PodRequest(
    "r2",
    "tenant-a",
    VmiId("tenant-a", "vm1", "u1"),
    KUBEVIRT,
    '[{"className":"l40s"},{"className":"l40s-24c","count":2}]',
    "Wait",
    kubevirt_namespace="cozy-kubevirt",
    classes=CLASSES,
)


def vmi(**fields: object) -> VmiRequest:
    """Return the good request with other fields."""
    return msgspec.structs.replace(VMI, **fields)


def pod(**fields: object) -> PodRequest:
    """Return the good launcher request with other fields."""
    return msgspec.structs.replace(POD, **fields)


def a_class(view: ClassView, **fields: object) -> tuple[ClassView, ...]:
    """Return the classes with one of them changed."""
    return tuple(msgspec.structs.replace(v, **fields) if v is view else v for v in CLASSES)
