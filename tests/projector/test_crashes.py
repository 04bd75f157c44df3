"""Wherever the projector dies and whatever the server answers, planning again ends in the same world."""

import asyncio
from collections.abc import Mapping, Sequence

import looptime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from binder.kube import ApiError
from binder.state import GpuSet, Holding
from schemas.kinds import EVENT, GPU_CLAIM, POD, Resource
from schemas.names import CLAIM_FINALIZER, GATE
from schemas.reasons import Wait
from tests.projector.conftest import new_scene
from tests.projector.faults import Hold, Life, Mishap, forbidden, refusing
from tests.projector.scene import MODEL, SECONDS, ZONE, Obj, Scene, gates, stamp, terms_json, time_passes

WRITES = 19
"""Template claims 2 + 1 + 1 + 1, as many statuses but for the set that was only opened, 2 pins, 1 event.

And for three held claims 2 finalizers, 3 statuses, 1 event, 1 finalizer off.
"""


async def decisions(model: Scene) -> tuple[list[GpuSet], list[Holding]]:
    """One set of each sort: placed with two claims, placed without terms, waiting, opened; and held claims.

    One used by the second set, one waiting, one freed.
    """
    sets = []
    for name, terms, units in (("a", (ZONE, MODEL), (2, 1)), ("b", (), (1,))):
        pod = await model.launcher(terms_json(terms) if terms else None, name=f"virt-launcher-{name}")
        sets.append(model.placed(await model.vmi(f"vm-{name}"), pod, terms=terms, units=units))
    vmi = await model.vmi("vm-d")
    opened = GpuSet(vmi, sets[0].stamp, 0, claims=model.claims(vmi, (1,)))
    used, waits, freed = await model.order("used"), await model.order("waits"), await model.order("freed")
    sets[1] = replace(sets[1], held=(used,))
    await model.patch(GPU_CLAIM, "freed", {"metadata": {"finalizers": [CLAIM_FINALIZER, "example.org/slow"]}})
    await model.kube.delete(GPU_CLAIM, model.namespace, "freed")
    held = [
        model.hold(used, node=sets[1].node, attached=sets[1].vmi),
        model.hold(waits, reason=Wait.NO_ROOM, message="no room", told=stamp(10)),
        model.hold(freed, freed=True),
    ]
    return [*sets, model.waiting(await model.vmi("vm-c"), Wait.NO_ROOM), opened], held


async def world(model: Scene) -> list[Obj]:
    """All that anybody can see of the outcome: without what tells one write from two that say the same."""
    seen = []
    for resource in (GPU_CLAIM, POD, EVENT):
        for obj in await model.all(resource):
            metadata = obj["metadata"]
            for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                metadata.pop(field, None)
            seen.append(obj)
    return seen


async def _lived(lives: Sequence[Mapping[int, Mishap]]) -> tuple[list[Obj], int]:
    model = await new_scene()
    sets, held = await decisions(model)
    model.state.sets.update({one.vmi.uid: one for one in sets})
    model.state.holdings.update({f"{one.namespace}/{one.claim.name}": one for one in held})
    for mishaps in [*lives, {}]:
        life = Life(model.kube, mishaps)
        async with model.projector(life.kube) as projector:
            projector.begin(model.state)
            ends = [asyncio.ensure_future(end) for end in (projector.idle(), life.died.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=3600)
            assert any(end.done() for end in ends), "neither done nor dead within an hour"
            for end in ends:
                end.cancel()
    told = {(one.vmi_uid or one.name, one.code) for one in await model.outcomes()}
    assert told == {*((one.vmi.uid, 0) for one in sets), ("waits", 0), ("freed", 0)}
    return await world(model), life.writes


def lived(*lives: Mapping[int, Mishap]) -> tuple[list[Obj], int]:
    """Let projectors live through mishaps, one after the other and a last one without; return the world they leave.

    And how many writes the last one tried. Time jumps, so that back-off costs nothing.
    """
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(_lived(lives))


UNHARMED, TRIED = lived()


def test_an_unharmed_projector_pins_and_tells() -> None:
    """What the other tests compare with is not empty: five claims and three held, two pinned launchers, two events."""
    kinds = [obj["kind"] for obj in UNHARMED]

    assert [kinds.count(kind) for kind in ("GPUClaim", "Pod", "Event")] == [8, 2, 2]
    assert not any(GATE in str(obj) for obj in UNHARMED if obj["kind"] == "Pod")
    assert TRIED == WRITES


@pytest.mark.parametrize("mishap", list(Mishap), ids=lambda mishap: mishap.name)
@pytest.mark.parametrize("write", range(WRITES))
def test_one_mishap_at_any_write_changes_nothing(write: int, mishap: Mishap) -> None:
    """C20: dead or answered wrongly before or after any single write, the end is the same."""
    assert lived({write: mishap})[0] == UNHARMED


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, WRITES), st.sampled_from(Mishap), max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_any_mishaps_in_any_lives_change_nothing(lives: list[dict[int, Mishap]]) -> None:
    """Several deaths and wrong answers, in whatever order, end in the same world."""
    assert lived(*lives)[0] == UNHARMED


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("resource", "action", "gated"), [(GPU_CLAIM, "claim", True), (POD, "pin", True)], ids=["claim", "pin"]
)
async def test_a_refusal_is_reported_without_values(
    model: Scene, resource: Resource, action: str, *, gated: bool
) -> None:
    """T16, T23: what can't succeed goes back with code, reason and field path, and nothing after it is done."""
    vmi, pod = await model.vmi(), await model.launcher()

    (outcome,) = await model.project(
        model.placed(vmi, pod), kube=refusing(model.kube, resource, forbidden("spec.secret"))
    )

    assert (outcome.action, outcome.code, outcome.reason, outcome.field) == (action, 403, "Forbidden", "spec.secret")
    assert "hunter2" not in str(outcome)
    assert ("schedulingGates" in (await model.get(POD, "virt-launcher-a"))["spec"]) is gated


@pytest.mark.looptime
async def test_one_stuck_set_does_not_hold_up_others(model: Scene) -> None:
    """Sets go side by side: more sets than may be written at once wait for an answer, another still lands."""
    stuck = ApiError(503, "ServiceUnavailable", "later")
    waiting = [model.waiting(await model.vmi(f"vm-{number}")) for number in range(70)]
    vmi, pod = await model.vmi(), await model.launcher()
    kube = refusing(model.kube, EVENT, stuck)
    async with model.projector(kube) as projector:
        model.decide(projector, *waiting)
        model.decide(projector, model.placed(vmi, pod))
        deadline = asyncio.get_running_loop().time() + 3600
        while "schedulingGates" in (await model.get(POD, "virt-launcher-a"))["spec"]:
            assert asyncio.get_running_loop().time() < deadline
            await time_passes(1)

    assert [outcome.vmi_uid for outcome in await model.outcomes()] == [vmi.uid]


@pytest.mark.looptime
async def test_a_newer_decision_ends_the_repeats_of_an_older_one(model: Scene) -> None:
    """T23: an unclear write is repeated while its decision is the newest; a newer one takes its place."""
    vmi, pod = await model.vmi(), await model.launcher()
    kube = refusing(model.kube, POD, ApiError(0, "Unreachable", ""))
    async with model.projector(kube) as projector:
        model.decide(projector, model.placed(vmi, pod, at=10))
        await time_passes(60)
        assert await model.outcomes() == []

        model.decide(projector, model.waiting(vmi, Wait.PAUSED, at=11))
        await projector.idle()

    assert [outcome.stamp.sequence for outcome in await model.outcomes()] == [11]


async def test_a_set_released_while_it_is_written_is_not_pinned(model: Scene) -> None:
    """T22: a newer decision stops the older one between two writes; its pin is never made."""
    vmi, pod = await model.vmi(), await model.launcher()
    hold = Hold(GPU_CLAIM)
    async with model.projector(hold.door(model.kube)) as projector:
        model.decide(projector, model.placed(vmi, pod, at=10))
        await asyncio.wait_for(hold.reached.wait(), SECONDS)
        model.decide(projector, model.waiting(vmi, Wait.PAUSED, at=11))
        hold.release.set()
        await asyncio.wait_for(projector.idle(), SECONDS)

    assert GATE in gates(await model.get(POD, "virt-launcher-a"))
    assert [outcome.stamp.sequence for outcome in await model.outcomes()] == [11]


@pytest.mark.looptime
async def test_a_closed_set_is_repeated_no_more(model: Scene) -> None:
    """What can't be written of a set that is forgotten is given up."""
    vmi, pod = await model.vmi(), await model.launcher()
    kube = refusing(model.kube, POD, ApiError(0, "Unreachable", ""))
    async with model.projector(kube) as projector:
        model.decide(projector, model.placed(vmi, pod))
        await time_passes(60)
        del model.state.sets[vmi.uid]

        projector.take(model.state, [vmi.uid], [])
        await asyncio.wait_for(projector.idle(), SECONDS)

    assert await model.outcomes() == []
