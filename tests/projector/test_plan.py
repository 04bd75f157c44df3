"""Plans and patches as data: what is written for a set, in which order, and nothing else."""

import msgspec
import pytest
from msgspec.structs import replace

from binder.records import Start
from binder.state import GpuSet, Holding, Leaving, empty_state
from projector import render
from projector.effects import AnyEffect, CreateClaim, DropVmi, GuardClaim, Pin, UnguardClaim, Warn, WriteStatus
from projector.plan import is_open, plan, undecided
from projector.plan_held import plan_held
from schemas.decisions import HeldClaim, TemplateClaim, VmiId
from schemas.labels import label_value
from schemas.objects import ClaimView, NodeSelectorTerm, Requirement, Stamp, VmiView
from schemas.reasons import Release, Unkept, Wait

VMI = VmiId("tenant-a", "vm-a", "uid-a")
CLAIMS = (TemplateClaim("c0", "l40s", 2, "nvidia.com/AD102GL_L40S"), TemplateClaim("c1", "a30", 1, "nvidia.com/A30"))
OPENED = GpuSet(VMI, Stamp(1, 5), 0, claims=CLAIMS)
TERM = NodeSelectorTerm((Requirement("zone", "In", ("a",)),))
PLACED = replace(OPENED, stamp=Stamp(1, 6), node="n1", pod="p", pod_uid="uid-p", terms=(TERM,))
HELD = HeldClaim("mine", "uid-mine", "l40s", 1, "nvidia.com/AD102GL_L40S")
HOLDING = Holding("tenant-a", HELD, Stamp(1, 6), node="n1")
WAITING = replace(OPENED, stamp=Stamp(1, 6), reason=Wait.NO_ROOM, message="no room", told=Stamp(1, 6))


def kinds(gpu_set: GpuSet) -> list[tuple[type[AnyEffect], ...]]:
    """The kinds of effects, stage by stage."""
    return [tuple(type(effect) for effect in stage) for stage in plan(gpu_set)]


def test_claims_come_first_then_their_status_then_the_pin() -> None:
    """D3: the status is before the pin, so that a stale writer is stopped before it pins (T22)."""
    assert kinds(PLACED) == [(CreateClaim, CreateClaim), (WriteStatus, WriteStatus), (Pin,)]


def test_a_waiting_set_is_told_last() -> None:
    """D5: claims, their status, and one event."""
    assert kinds(WAITING) == [(CreateClaim, CreateClaim), (WriteStatus, WriteStatus), (Warn,)]


def test_an_opened_set_is_only_created() -> None:
    """Of a set that nothing was said of yet, nothing is said: its claims are Pending by default."""
    assert kinds(OPENED) == [(CreateClaim, CreateClaim)]


def test_a_set_without_claims_is_only_told() -> None:
    """A VMI whose class does not exist has no claims; its owner hears why."""
    assert kinds(replace(WAITING, claims=())) == [(Warn,)]


def test_a_pinned_set_is_not_pinned_again() -> None:
    """Once the pod was seen without our gate there is nothing left to pin."""
    assert kinds(replace(PLACED, pinned=True)) == [(CreateClaim, CreateClaim), (WriteStatus, WriteStatus)]


def test_nothing_is_written_before_the_vmi_is_seen() -> None:
    """A set booked at admission has an owner only once that is stored: then claims and status, and a pin never."""
    booked = replace(OPENED, stamp=Stamp(1, 6), node="n1", start=Start("r1", 0))
    seen = replace(booked, start=None)

    assert not is_open(booked)
    assert plan(booked) == ()
    assert is_open(seen)
    assert kinds(seen) == [(CreateClaim, CreateClaim), (WriteStatus, WriteStatus)]
    assert not is_open(replace(seen, confirmed=Stamp(1, 6)))


def test_a_released_set_waits_again() -> None:
    """A booking that ended leaves the claims Pending, without a node, with the reason of its end."""
    released = replace(OPENED, released=Release.LAUNCHER_ENDED)
    status = plan(released)[1][0]

    assert isinstance(status, WriteStatus)
    assert (status.phase.value, status.node, status.reason, status.placed) == ("Pending", "", "LauncherEnded", False)


def test_status_names_the_resource_of_the_decision() -> None:
    """T24: each claim shows the resource it was decided under."""
    shown = [effect.resource for effect in plan(PLACED)[1] if isinstance(effect, WriteStatus)]

    assert shown == ["nvidia.com/AD102GL_L40S", "nvidia.com/A30"]


def test_held_claims_of_a_set_stand_before_the_pin() -> None:
    """T22: guarded beside the creation of the set's own claims, shown beside their status."""
    stages = plan(PLACED, (replace(HOLDING, attached=VMI),))

    assert [tuple(type(effect) for effect in stage) for stage in stages] == [
        (CreateClaim, CreateClaim, GuardClaim),
        (WriteStatus, WriteStatus, WriteStatus),
        (Pin,),
    ]


def test_a_held_claim_alone_is_guarded_then_shown_then_told() -> None:
    """F1, D5: no status without the finalizer; one that is freed is shown before the finalizer goes."""
    told = replace(HOLDING, node="", reason=Wait.NO_ROOM, message="no room", told=Stamp(1, 6))
    freed = replace(HOLDING, node="", freed=True)
    kinds = [[tuple(type(effect) for effect in stage) for stage in plan_held(one)] for one in (HOLDING, told, freed)]

    assert kinds == [
        [(GuardClaim,), (WriteStatus,)],
        [(GuardClaim,), (WriteStatus,), (Warn,)],
        [(WriteStatus,), (UnguardClaim,)],
    ]


def test_the_newer_stamp_is_shown() -> None:
    """T22: set and claim are decided on each by themselves; what shows both carries the newer decision."""
    holding = replace(HOLDING, attached=VMI, stamp=Stamp(1, 9))
    stamps = {
        effect.stamp
        for one in (PLACED, replace(PLACED, stamp=Stamp(1, 12)))
        for effect in plan(one, (holding,))[1]
        if isinstance(effect, WriteStatus) and effect.uid
    }

    assert stamps == {Stamp(1, 9), Stamp(1, 12)}


def test_a_vmi_that_is_given_up_goes_first() -> None:
    """D8: whatever becomes of the claims; and once its going has landed, not again."""
    leaving = replace(PLACED, pinned=True, leaving=Leaving("n1", Unkept.NODE_GONE, "gone", Stamp(1, 6), 0))

    assert kinds(leaving)[0] == (DropVmi, Warn)
    assert kinds(replace(leaving, stamp=Stamp(1, 7), confirmed=Stamp(1, 6)))[0] == (CreateClaim, CreateClaim)


def test_a_set_is_open_for_the_sake_of_its_held_claims() -> None:
    """What was decided on a claim alone since the set's last word is written at a start; said before, it is not."""
    settled = replace(PLACED, confirmed=PLACED.stamp, pinned=True)
    attached = replace(HOLDING, attached=VMI)

    assert not is_open(settled, (attached,))
    assert is_open(settled, (replace(attached, stamp=Stamp(1, 7)),))
    assert not is_open(settled, (replace(attached, stamp=Stamp(1, 7), confirmed=Stamp(1, 7)),))


def test_events_are_named_by_decision() -> None:
    """T22, C59: the same decision gives the same name, another one another, another VMI another."""
    again = replace(WAITING, stamp=Stamp(1, 9))
    later = replace(WAITING, told=Stamp(1, 7))
    other = replace(WAITING, vmi=replace(VMI, uid="uid-b"))
    names = [plan(one)[-1][0].name for one in (WAITING, again, later, other)]

    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("vm-a.") for name in names)


@pytest.mark.parametrize("name", ["v" * 253, "v" * 235 + "." * 3 + "w" * 15])
def test_events_of_long_names_are_named_well(name: str) -> None:
    """C60: however long the VMI's name is, the event's is valid."""
    (warn,) = plan(replace(WAITING, vmi=replace(VMI, name=name)))[-1]

    assert len(warn.name) <= 253
    assert ".." not in warn.name
    assert "-." not in warn.name


def test_a_set_is_open_until_all_is_known_to_have_landed() -> None:
    """At a start, sets whose newest decision is confirmed and whose pin was seen are left alone."""
    confirmed = replace(PLACED, confirmed=PLACED.stamp)

    assert is_open(PLACED)
    assert is_open(confirmed)
    assert not is_open(replace(confirmed, pinned=True))
    assert not is_open(replace(WAITING, confirmed=WAITING.stamp))


def test_the_pin_is_one_conditional_patch() -> None:
    """T21: uid, gate and affinity are tested, the pin is added and the gate removed, in one patch."""
    (pin,) = plan(PLACED)[-1]
    assert isinstance(pin, Pin)

    operations = msgspec.json.decode(render.pin_patch(pin))

    terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
    seen = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    pinned = seen | {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert operations == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-p"},
        {"op": "test", "path": "/spec/schedulingGates", "value": [{"name": "cozystack.io/gpu"}]},
        {"op": "test", "path": terms, "value": [seen]},
        {"op": "replace", "path": terms, "value": [pinned]},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]


def test_a_long_message_is_cut_within_the_limit_of_events() -> None:
    """An event's note has 1024 bytes at most; a letter of several bytes is not cut through."""
    (warn,) = plan(replace(WAITING, message="ä" * 600))[-1]
    assert isinstance(warn, Warn)

    note = msgspec.json.decode(render.event_body(warn, now="", instance="i"))["note"]

    assert note == "ä" * 512


def test_long_class_names_stay_apart_as_labels() -> None:
    """A class name longer than a label value is cut and hashed; a short one is the label."""
    one, other = "l40s-" + "x" * 100, "l40s-" + "x" * 101

    assert label_value("l40s") == "l40s"
    assert len(label_value(one)) == len(label_value(other)) == 63
    assert label_value(one) != label_value(other)


def test_strays_of_living_vmis_go_at_a_start() -> None:
    """T14: template claims nobody decided go; decided, held, deleting ones and those of VMIs that are gone stay."""
    state = empty_state()
    state.sets["uid-a"] = OPENED
    state.objects["virtualmachineinstances"]["tenant-a/vm-a"] = VmiView("vm-a", "uid-a", "1", "tenant-a")
    for claim in (
        ClaimView("c0", "1", "1", "tenant-a", template=True, owner_uid="uid-a"),
        ClaimView("held", "2", "1", "tenant-a"),
        ClaimView("going", "3", "1", "tenant-a", template=True, deleting=True, owner_uid="uid-a"),
        ClaimView("orphan", "4", "1", "tenant-a", template=True, owner_uid="uid-gone"),
        ClaimView("stray", "5", "1", "tenant-a", template=True, owner_uid="uid-a"),
        ClaimView("c0", "6", "1", "tenant-b", template=True),
    ):
        state.objects["gpuclaims"][claim.key] = claim

    assert [(effect.vmi.namespace, effect.name, effect.uid) for effect in undecided(state)] == [
        ("tenant-a", "stray", "5"),
        ("tenant-b", "c0", "6"),
    ]
