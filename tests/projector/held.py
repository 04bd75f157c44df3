"""Held claims of a scene: a set that has one, and what of a claim is looked at."""

from msgspec.structs import replace

from binder.state import GpuSet, Holding
from schemas.decisions import HeldClaim, VmiId
from schemas.events import Outcome
from schemas.kinds import GPU_CLAIM
from tests.projector.scene import NODE, Obj, Scene

FOREIGN = "example.org/slow"


def of_set(scene: Scene, vmi: VmiId, pod: Obj, claim: HeldClaim, at: int = 10) -> tuple[GpuSet, Holding]:
    """A set of nothing but a held claim, placed, and the claim as its VMI holds it."""
    gpu_set = replace(scene.placed(vmi, pod, at=at, units=()), held=(claim,))
    return gpu_set, scene.hold(claim, at=at, node=NODE, attached=vmi)


def reported(outcomes: list[Outcome], name: str = "mine") -> bool:
    """Whether one held claim, and nothing else, was reported as written."""
    return [(one.action, one.name, one.vmi_uid, one.code) for one in outcomes] == [("held", name, "", 0)]


async def status(scene: Scene, name: str = "mine") -> Obj:
    """What a held claim shows."""
    found: Obj = (await scene.get(GPU_CLAIM, name)).get("status", {})
    return found


async def finalizers(scene: Scene, name: str = "mine") -> list[str]:
    """The finalizers of a held claim."""
    found: list[str] = (await scene.get(GPU_CLAIM, name))["metadata"].get("finalizers", [])
    return found
