"""Deletes VMIs that were given up: by uid and version, and only while no guest runs in them (D8)."""

from typing import Final

from binder.kube import ApiError, Kube
from projector.effects import DropVmi
from projector.reads import read
from projector.verdicts import LANDED, Verdict, again, judged
from schemas.kinds import VMI
from schemas.writes import SeenVmi

_TRIES = 3
STARTING_PHASES: Final = frozenset({"", "Pending", "Scheduling", "Scheduled"})
"""Phases before a guest runs, and before one has ended: in all others there is nothing to free, or somebody's VM."""


async def drop_vmi(kube: Kube, effect: DropVmi) -> Verdict:
    """Have the VMI gone or going. One whose guest runs by now is left alone: it is never started a second time."""
    namespace, verdict = effect.vmi.namespace, LANDED
    for _ in range(_TRIES):
        try:
            vmi = await read(kube, VMI, namespace, effect.name, SeenVmi)
            if vmi is None or not _stands(vmi, effect):
                return LANDED
            version = vmi.metadata.resource_version
            await kube.delete(VMI, namespace, effect.name, uid=effect.vmi.uid, resource_version=version)
            return LANDED
        except ApiError as error:
            if error.code == 404:
                return LANDED
            if error.code != 409:
                return judged(error)
            verdict = again(error)
    return verdict


def _stands(vmi: SeenVmi, effect: DropVmi) -> bool:
    metadata, phase = vmi.metadata, vmi.status.phase if vmi.status is not None else ""
    return metadata.uid == effect.vmi.uid and metadata.deletion_timestamp is None and phase in STARTING_PHASES
