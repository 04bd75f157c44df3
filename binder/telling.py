"""Inputs and decisions told in a line each (pure)."""

from collections.abc import Iterable, Iterator

import msgspec

from schemas import decisions as d
from schemas import events as e
from schemas.objects import (
    AnyView,
    ClaimView,
    Gone,
    NodeView,
    PodView,
    PoolView,
    ReplicaSetView,
    VmiView,
)

AboutClaims = (
    d.VmiGivenUp
    | d.NodeKept
    | d.HeldPlaced
    | d.HeldLost
    | d.HeldWaits
    | d.HeldFreed
    | d.ClassGuarded
    | d.ClassFreed
    | d.ClaimDropped
    | d.LauncherAdopted
    | d.SetAdopted
    | d.HeldAdopted
    | d.Adopted
)
AboutLicences = d.LicenceCopied | d.LicenceDropped | d.LicenceBlocked | d.LicenceMissing

NAMES_MAX = 3
"""So many objects of a chunk are named; the rest is counted."""


def told_event(body: bytes) -> str:
    """Return an EVENTS body in one line; what can't be read is told as such."""
    try:
        event = e.decode_event(body)
    except e.UnknownMessage as unknown:
        return f"unknown: {unknown.kind} version {unknown.version}"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return f"unreadable, {len(body)} bytes"
    match event:
        case e.SessionOpened():
            return f"{event.kind}: a list begins" + (", the server went back in time" if event.rewound else "")
        case e.Changes():
            return f"{event.kind}: {_changes(event.changes)}"
        case e.SessionSynced():
            return f"{event.kind}: the list is complete at {event.rv}"
        case e.NotServed():
            return f"{event.kind}: not served"
        case e.Progress():
            return f"progress of {len(event.marks)} watches"
        case e.VmiRequest():
            return f"may VMI {event.namespace}/{event.name or '(to be named)'} start? {event.gpus}"
        case e.PodRequest():
            return f"may a launcher of {event.vmi.namespace}/{event.vmi.name} pass?"
        case e.WriteRequest():
            of = f" for {event.view.replicas} of" if isinstance(event.view, PoolView | ReplicaSetView) else ""
            return f"may {event.kind} {event.namespace}/{event.name} be written?{of} {event.view.gpus}"
        case e.OrderRequest():
            return f"may {event.count} x {event.class_name} be ordered as {event.namespace}/{event.name}?"
        case e.StartRequest():
            return f"may VMI {_vmi(event.vmi)} start now? {event.asked.gpus}"
        case e.StartWithdrawn():
            return f"nobody waits any more for the start of {_vmi(event.vmi)}"
        case e.Outcomes():
            return "written: " + _some(_outcome(outcome) for outcome in event.outcomes)
        case e.Command():
            return f"{event.who} says {event.order}" + (f" {event.namespace}/{event.name}" if event.name else "")
        case e.Tick():
            return "time passes"
        case e.Continue():
            return "go on with what was left over"


def _changes(changes: tuple[AnyView | Gone, ...]) -> str:
    return _some(f"{change.key} is gone" if isinstance(change, Gone) else _view(change) for change in changes)


def _view(view: AnyView) -> str:
    match view:
        case PodView():
            word = f"on {view.node}" if view.node else ("gated" if view.gates else "")
            phase = view.phase or "new"
            return f"{view.key} {phase}{' ' if word else ''}{word}"
        case VmiView():
            return f"{view.key} {view.phase or 'new'}" + (f" on {view.node}" if view.node else "")
        case NodeView():
            return view.key + ("" if view.ready else " not ready") + (" cordoned" if view.unschedulable else "")
        case ClaimView():
            return f"{view.key} {view.phase or 'new'}"
        case _:
            return view.key


def _outcome(outcome: e.Outcome) -> str:
    told = f"{outcome.action} {outcome.namespace}/{outcome.name}"
    return f"{told} refused with {outcome.code} {outcome.reason}" if outcome.code else told


def _some(words: Iterable[str]) -> str:
    found = list(words)
    rest = len(found) - NAMES_MAX
    return ", ".join(found[:NAMES_MAX]) + (f" and {rest} more" if rest > 0 else "")


def told_decision(decision: d.Decision) -> str:
    """Return a decision in one line."""
    match decision:
        case d.Rejected():
            return f"rejected: {decision.why}"
        case d.VmiAdmitted():
            entries = ", ".join(f"{entry.count} x {entry.class_name}" for entry in decision.entries)
            return f"VMI {decision.namespace}/{decision.name} may start: {entries}"
        case d.PodAdmitted():
            return f"launcher of {_vmi(decision.vmi)} may pass" + (", behind our gate" if decision.gate else "")
        case d.Refused():
            return f"{decision.namespace}/{decision.name} refused, {decision.reason}: {decision.message}"
        case d.WritePassed():
            return f"{decision.namespace}/{decision.name} may be written"
        case d.SetOpened():
            claims = ", ".join(f"{claim.count} x {claim.class_name}" for claim in every_claim(decision))
            return f"{_vmi(decision.vmi)} asks for {claims}"
        case d.SetPlaced():
            return f"{_vmi(decision.vmi)} is placed on {decision.node}, pod {decision.pod}"
        case d.SetBooked():
            return f"{_vmi(decision.vmi)} may start, and is booked on {decision.node}"
        case d.StartHeld():
            return f"the start of {_vmi(decision.vmi)} is not decided yet: {decision.reason}"
        case d.SetWaits():
            return f"{_vmi(decision.vmi)} waits, {decision.reason}: {decision.message}"
        case d.SetReleased():
            return f"{_vmi(decision.vmi)} gives up {decision.node}: {decision.reason}"
        case d.NodeSkipped():
            return f"{_vmi(decision.vmi)} skips {decision.node}, {decision.cause}: pod {decision.pod} is to go"
        case d.Commanded():
            return f"{decision.who} said {decision.order}: {decision.answer}"
        case d.SetClosed():
            return f"{_vmi(decision.vmi)} is forgotten"
        case d.LicenceCopied() | d.LicenceDropped() | d.LicenceBlocked() | d.LicenceMissing():
            return _told_of_licences(decision)
        case _:
            return _told_of_claims(decision)


def _told_of_claims(decision: AboutClaims) -> str:
    match decision:
        case d.VmiGivenUp():
            return f"{_vmi(decision.vmi)} is given up on {decision.node}, {decision.reason}: {decision.message}"
        case d.NodeKept():
            return f"{decision.node or 'no node'} is kept for {_vmi(decision.vmi)}"
        case d.HeldPlaced():
            return f"{_held(decision)} on {decision.node}: {decision.why}"
        case d.HeldLost():
            lost = f"lost {decision.node}" if decision.node else "is lost"
            return f"{_held(decision)} {lost}, {decision.reason}: {decision.message}"
        case d.HeldWaits():
            return f"{_held(decision)} waits, {decision.reason}: {decision.message}"
        case d.ClaimDropped():
            return f"claim {decision.namespace}/{decision.name} is to go: nobody decided it"
        case d.HeldFreed():
            return f"claim {decision.namespace}/{decision.name} may go: nobody uses it"
        case d.ClassGuarded():
            return f"class {decision.name} waits, when it is deleted, for what uses it"
        case d.ClassFreed():
            return f"class {decision.name} may go: nothing uses it"
        case d.LauncherAdopted():
            return f"the launcher of {_vmi(decision.vmi)} that waits behind our gate is taken over"
        case d.SetAdopted():
            units = [f"{one.count} x {one.class_name}" for one in decision.claims]
            units += [f"{one.count} x {one.class_name} of claim {one.name}" for one in decision.held]
            found = f"{_vmi(decision.vmi)} is on {decision.node}, as its pod {decision.pod} was found"
            return f"{found}: {', '.join(units)}"
        case d.HeldAdopted():
            where = f"on {decision.node}, as it was found" if decision.node else f"is lost: {decision.message}"
            return f"{_held(decision)} {where}"
        case d.Adopted():
            return f"taken over: {decision.sets} VMs on nodes, {decision.held} held claims"


def _told_of_licences(decision: AboutLicences) -> str:
    match decision:
        case d.LicenceCopied():
            return f"Secret {decision.namespace}/{decision.name} holds the licence of class {decision.gpu_class}"
        case d.LicenceDropped():
            return f"Secret {decision.namespace}/{decision.name} is to go: no licence is due there any more"
        case d.LicenceBlocked():
            return f"Secret {decision.namespace}/{decision.name} can't be written: {decision.message}"
        case d.LicenceMissing():
            return f"class {decision.name}, {decision.reason}: {decision.message}"


def _held(decision: d.HeldPlaced | d.HeldLost | d.HeldWaits | d.HeldAdopted) -> str:
    return "claim " + ", ".join(f"{decision.namespace}/{claim.name}" for claim in decision.claims)


def every_claim(opened: d.SetOpened | d.SetAdopted | d.SetBooked) -> Iterator[d.TemplateClaim | d.HeldClaim]:
    """Return the claims of a set that was opened, its own and the held ones."""
    yield from opened.claims
    yield from opened.held


def _vmi(vmi: d.VmiId) -> str:
    return f"{vmi.namespace}/{vmi.name}"
