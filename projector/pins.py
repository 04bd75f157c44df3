"""Pins launchers: one conditional patch, and what a refusal of it means (D3, T21).

The patch is conditional on content, not on resourceVersion: virt-controller touches a gated pod right
after its creation. A failed condition, a repeated pin and a broken rule all answer 422, so the pod is
read and compared before anything is taken for refused.
"""

from enum import Enum, auto

from binder.kube import ApiError, Kube, PatchKind
from projector import render
from projector.effects import Pin
from projector.reads import read
from projector.verdicts import LANDED, SETTLED, Verdict, again, judged, refused
from schemas import names, pinning
from schemas.kinds import POD

AFFINITY_CHANGED = "AffinityChanged"
GATE_CHANGED = "GateChanged"
_TRIES = 3


class _Sight(Enum):
    """What a fresh look at the pod shows."""

    READY = auto()
    PINNED = auto()
    OVER = auto()
    GATES = auto()
    AFFINITY = auto()


class PinWriter:
    """Pins one launcher at a time."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def pin(self, effect: Pin) -> Verdict:
        """Have the pod pinned to the node and our gate off, if it still is what was decided on."""
        try:
            # Where nothing was required, what else stands in the affinity decides how the first term is put.
            affinity = None
            if not effect.terms:
                pod = await self._read(effect)
                sight = _look(pod, effect)
                if pod is None or sight is not _Sight.READY:
                    return _verdict(sight)
                affinity = pod.spec.affinity
            return await self._patch(effect, affinity)
        except ApiError as error:
            return judged(error)

    async def _patch(self, effect: Pin, affinity: pinning.Affinity | None) -> Verdict:
        patch = render.pin_patch(effect, affinity)
        for left in reversed(range(_TRIES)):
            try:
                await self._kube.patch(POD, effect.vmi.namespace, effect.name, patch, kind=PatchKind.JSON)
                return LANDED
            except ApiError as error:
                if error.code == 404:
                    return SETTLED
                if error.code not in {409, 422}:
                    return judged(error)
                sight = _look(await self._read(effect), effect)
                if sight is not _Sight.READY:
                    return _verdict(sight)
                if error.code == 422 and (error.causes or not left):
                    return judged(error)
                verdict = again(error)
        return verdict

    async def _read(self, effect: Pin) -> pinning.Launcher | None:
        return await read(self._kube, POD, effect.vmi.namespace, effect.name, pinning.Launcher)


def _look(pod: pinning.Launcher | None, effect: Pin) -> _Sight:
    if pod is None or pod.metadata.uid != effect.pod_uid or pod.over:
        return _Sight.OVER
    wanted = pinning.pinned(effect.terms, effect.node) or pinning.pinned_alone(effect.node)
    if names.GATE not in pod.gates and (pod.spec.terms == wanted or pod.spec.node_name == effect.node):
        return _Sight.PINNED
    if pod.gates != (names.GATE,):
        return _Sight.GATES
    if pod.spec.terms != effect.terms:
        return _Sight.AFFINITY
    return _Sight.READY


def _verdict(sight: _Sight) -> Verdict:
    match sight:
        case _Sight.PINNED:
            return LANDED
        case _Sight.GATES:
            return refused(409, GATE_CHANGED, pinning.GATES_PATH)
        case _Sight.AFFINITY:
            return refused(409, AFFINITY_CHANGED, pinning.TERMS_PATH)
        case _:
            return SETTLED
