"""Deletes launchers that were given up: once, by uid and version, and only while they stand as was decided (D7)."""

from binder.kube import ApiError, Kube
from projector.effects import DropPod
from projector.reads import read
from projector.verdicts import LANDED, Verdict, again, judged
from schemas.kinds import POD
from schemas.pinning import ENDED_PHASES, Launcher

_TRIES = 3


async def drop_pod(kube: Kube, effect: DropPod) -> Verdict:
    """Have the pod gone or going. One that stands otherwise by now is left alone: KubeVirt or the scheduler won."""
    namespace, verdict = effect.vmi.namespace, LANDED
    for _ in range(_TRIES):
        try:
            pod = await read(kube, POD, namespace, effect.name, Launcher)
            if pod is None or not _stands(pod, effect):
                return LANDED
            version = pod.metadata.resource_version
            await kube.delete(POD, namespace, effect.name, uid=effect.uid, resource_version=version)
            return LANDED
        except ApiError as error:
            if error.code == 404:
                return LANDED
            if error.code != 409:
                return judged(error)
            verdict = again(error)
    return verdict


def _stands(pod: Launcher, effect: DropPod) -> bool:
    metadata, ended = pod.metadata, pod.status.phase in ENDED_PHASES
    if metadata.uid != effect.uid or metadata.deletion_timestamp is not None:
        return False
    return ended if effect.refused else not (ended or pod.spec.node_name)
