"""A held claim goes from hand to hand while it is written: whatever is decided, the newest decision is shown."""

import asyncio
from collections.abc import Mapping, Sequence
from enum import Enum, auto

import looptime
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from binder.state import GpuSet, Holding
from projector.service import Projector
from schemas.decisions import Decision, HeldClaim, HeldPlaced, VmiId
from schemas.kinds import POD
from schemas.objects import Stamp
from schemas.reasons import Placing, Unkept, Wait
from tests.projector.conftest import new_scene
from tests.projector.faults import DEADLY, Life, Mishap
from tests.projector.held import status
from tests.projector.scene import Obj, Scene, gates, stamp, time_passes

HARMLESS = [mishap for mishap in Mishap if mishap not in DEADLY]


class Act(Enum):
    """What is decided next; what can't be, as things stand, is passed over."""

    ATTACH = auto()
    PLACE = auto()
    WAIT = auto()
    CLOSE = auto()
    MOVE = auto()
    LOSE = auto()


class Hands:
    """One held claim, and VMIs that hold it one after the other: one whose set was closed does not come back."""

    def __init__(self, scene: Scene, claim: HeldClaim, vmis: Sequence[tuple[VmiId, Obj]]) -> None:
        self.scene, self.vmis, self.coming = scene, vmis, iter(vmis)
        self.sequence = 10
        self.holding = Holding(scene.namespace, claim, stamp(10), node="n1")
        self.gpu_set: GpuSet | None = None

    def decide(self, act: Act, who: int) -> tuple[list[str], list[tuple[Stamp, Decision]]]:
        """Change the state as the decision would; return the sets it touched and what it said of the claim alone."""
        self.sequence += 1
        now, held, gpu_set = stamp(self.sequence), self.holding, self.gpu_set
        alone: list[tuple[Stamp, Decision]] = []
        match act:
            case Act.ATTACH if gpu_set is None and (coming := next(self.coming, None)):
                vmi = coming[0]
                gpu_set = GpuSet(vmi, now, 0, held=(held.claim,))
                held = replace(held, attached=vmi, stamp=now, reason=None, message="", told=Stamp())
            case Act.PLACE if gpu_set is not None:
                pod = next(pod for vmi, pod in self.vmis if vmi == gpu_set.vmi)["metadata"]
                node = gpu_set.node or f"n{who}"
                gpu_set = replace(gpu_set, stamp=now, node=node, pod=pod["name"], pod_uid=pod["uid"], reason=None)
                held = replace(held, stamp=now, node=node, lost=None)
            case Act.WAIT if gpu_set is not None and not gpu_set.node:
                gpu_set = replace(gpu_set, stamp=now, reason=Wait.NO_ROOM, message="no room", told=now)
                held = replace(held, stamp=now)
            case Act.CLOSE if gpu_set is not None:
                touched, gpu_set = gpu_set.vmi.uid, None
                held = replace(held, attached=None, stamp=now)
                self._store(held, None)
                return [touched], []
            case Act.MOVE | Act.LOSE if gpu_set is None or not gpu_set.node:
                gone = act is Act.LOSE
                lost = Unkept.NODE_GONE if gone else None
                held = replace(held, stamp=now, node="" if gone else f"n{who}", lost=lost, message="gone", told=now)
                alone = [(now, HeldPlaced("tenant-a", (held.claim,), held.node, Placing.MOVED))]
            case _:
                return [], []
        self._store(held, gpu_set)
        return [gpu_set.vmi.uid] if gpu_set is not None and not alone else [], alone

    def _store(self, held: Holding, gpu_set: GpuSet | None) -> None:
        state = self.scene.state
        if self.gpu_set is not None:
            state.sets.pop(self.gpu_set.vmi.uid, None)
        self.holding, self.gpu_set = held, gpu_set
        state.holdings["tenant-a/mine"] = held
        if gpu_set is not None:
            state.sets[gpu_set.vmi.uid] = gpu_set


Step = tuple[Act, int, float]


async def _shown(steps: Sequence[Step], mishaps: Mapping[int, Mishap]) -> None:
    scene = await new_scene()
    claim = await scene.order()
    vmis = [(await scene.vmi(f"vm-{name}"), await scene.launcher(name=f"virt-launcher-{name}")) for name in "abc"]
    hands, life = Hands(scene, claim, vmis), Life(scene.kube, mishaps)
    scene.state.holdings["tenant-a/mine"] = hands.holding
    async with scene.projector(life.kube) as projector:
        projector.begin(scene.state)
        for act, who, pause in steps:
            projector.take(scene.state, *hands.decide(act, who))
            await time_passes(pause)
        await asyncio.wait_for(projector.idle(), 3600)
        await _shows(scene, hands)
        _forgets(projector, hands)


async def _shows(scene: Scene, hands: Hands) -> None:
    """The claim shows the newest decision and who holds it; a launcher is let go only where its set is booked."""
    shown, held, gpu_set = await status(scene), hands.holding, hands.gpu_set
    assert shown["stamp"]["sequence"] == held.stamp.sequence
    assert shown.get("nodeName", "") == held.node
    assert (shown.get("attachedTo") or {}).get("uid", "") == (held.attached.uid if held.attached is not None else "")
    if gpu_set is not None and gpu_set.node:
        assert gates(await scene.get(POD, gpu_set.pod)) == []
    last = (await scene.outcomes())[-1]
    assert last.stamp == held.stamp
    assert (last.action, last.code) == ("held" if gpu_set is None or last.name == "mine" else "set", 0)


def _forgets(projector: Projector, hands: Hands) -> None:
    """What is no longer held is not kept in mind."""
    holders = projector._holders  # noqa: SLF001 - a leak would show nowhere else
    assert holders == ({hands.gpu_set.vmi.uid: ("tenant-a/mine",)} if hands.gpu_set is not None else {})


steps_ = st.lists(
    st.tuples(st.sampled_from(Act), st.integers(0, 1), st.sampled_from([0.0, 0.0, 0.05, 0.3, 30.0])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(steps_, st.dictionaries(st.integers(0, 12), st.sampled_from(HARMLESS), max_size=3))
@example([(Act.ATTACH, 0, 0.0), (Act.CLOSE, 0, 0.0), (Act.ATTACH, 1, 0.0)], {0: Mishap.LOST_AFTER})
@example([(Act.ATTACH, 0, 0.0), (Act.LOSE, 0, 0.0), (Act.PLACE, 1, 0.0), (Act.CLOSE, 0, 0.3)], {1: Mishap.BUSY})
def test_whoever_holds_a_claim_the_newest_decision_is_shown(steps: list[Step], mishaps: dict[int, Mishap]) -> None:
    """T22: between its own lane and those of two sets, with writes that fail, get lost or land unseen."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(_shown(steps, mishaps))
