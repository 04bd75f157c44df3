"""Deletes launchers that were given up: once, by uid and version, and only while they stand as was decided (D7)."""

from binder.kube import Kube
from projector.deleting import delete_while
from projector.effects import DropPod
from projector.verdicts import LANDED, Verdict
from schemas.kinds import POD
from schemas.pinning import ENDED_PHASES, Launcher


async def drop_pod(kube: Kube, effect: DropPod) -> Verdict:
    """Have the pod gone or going. One that stands otherwise by now is left alone: KubeVirt or the scheduler won."""

    def stands(pod: Launcher) -> bool:
        metadata, ended = pod.metadata, pod.status.phase in ENDED_PHASES
        if metadata.uid != effect.uid or metadata.deletion_timestamp is not None:
            return False
        return ended if effect.refused else not (ended or pod.spec.node_name)

    return await delete_while(kube, POD, effect.vmi.namespace, effect.name, Launcher, stands, otherwise=LANDED)
