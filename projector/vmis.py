"""Deletes VMIs that were given up: by uid and version, and only while no guest runs in them (D8)."""

from binder.keeping import BEFORE_RUNNING
from binder.kube import Kube
from projector.deleting import delete_while
from projector.effects import DropVmi
from projector.verdicts import LANDED, Verdict
from schemas.kinds import VMI
from schemas.writes import SeenVmi


async def drop_vmi(kube: Kube, effect: DropVmi) -> Verdict:
    """Have the VMI gone or going. One whose guest runs by now is left alone: it is never started a second time."""

    def stands(vmi: SeenVmi) -> bool:
        metadata, phase = vmi.metadata, vmi.status.phase if vmi.status is not None else ""
        # In every phase but these there is nothing to free, or somebody's VM.
        return metadata.uid == effect.vmi.uid and metadata.deletion_timestamp is None and phase in BEFORE_RUNNING

    return await delete_while(kube, VMI, effect.vmi.namespace, effect.name, SeenVmi, stands, otherwise=LANDED)
