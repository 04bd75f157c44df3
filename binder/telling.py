"""Inputs and decisions told in a line each, and the VMs, nodes and classes that they are about (pure)."""

from collections.abc import Iterable, Iterator

import msgspec

from schemas import decisions as d
from schemas import events as e
from schemas.objects import AnyView, ClaimView, ClassView, Gone, NodeView, PodView, VmiView, VmView

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


def about_event(body: bytes) -> frozenset[str]:
    """Return the subjects of an EVENTS body: `vm NAMESPACE/NAME`, `claim NAMESPACE/NAME`, `node NAME`, `class NAME`."""
    try:
        event = e.decode_event(body)
    except (e.UnknownMessage, msgspec.MsgspecError, UnicodeDecodeError):
        return frozenset()
    match event:
        case e.Changes():
            return frozenset(subject for change in event.changes for subject in _about_view(event.kind, change))
        case e.VmiRequest():
            return frozenset({f"vm {event.namespace}/{event.name}"})
        case e.Command():
            return _commanded(event.namespace, event.name, event.node)
        case e.PodRequest():
            return frozenset({f"vm {event.vmi.namespace}/{event.vmi.name}"})
        case e.Outcomes():
            # A claim's outcome names the claim; its set's names the VMI.
            return frozenset(map(_about_outcome, event.outcomes))
        case _:
            return frozenset()


def _about_outcome(outcome: e.Outcome) -> str:
    if not outcome.namespace:
        return f"class {outcome.name}"
    return f"{'vm' if outcome.vmi_uid else 'claim'} {outcome.namespace}/{outcome.name}"


def _about_view(kind: str, view: AnyView | Gone) -> Iterator[str]:
    match view:
        case PodView():
            if view.owner_name:
                yield f"vm {view.namespace}/{view.owner_name}"
            if view.node:
                yield f"node {view.node}"
        case VmiView() | VmView():
            yield f"vm {view.key}"
        case NodeView():
            yield f"node {view.name}"
        case ClassView():
            yield f"class {view.name}"
        case ClaimView():
            yield f"claim {view.key}"
            yield f"class {view.class_name}"
        case Gone():
            noun = {"nodes": "node", "gpuclasses": "class", "gpuclaims": "claim"}.get(
                kind, "vm" if kind.startswith("virtual") else ""
            )
            if noun:
                yield f"{noun} {view.key}"
        case _:
            return


def about_decision(decision: d.Decision) -> frozenset[str]:
    """Return the subjects of a decision, as `about_event` names them."""
    match decision:
        case d.Rejected() | d.Adopted():
            return frozenset()
        case d.Commanded():
            return _commanded(decision.namespace, decision.name, decision.node)
        case d.VmiAdmitted() | d.Refused():
            return frozenset({f"vm {decision.namespace}/{decision.name}"})
        case d.SetPlaced() | d.SetReleased() | d.NodeSkipped() | d.VmiGivenUp() | d.NodeKept():
            return frozenset({f"vm {_vmi(decision.vmi)}"} | _node(decision.node))
        case d.SetOpened() | d.SetAdopted() | d.SetBooked():
            classes = {f"class {claim.class_name}" for claim in every_claim(decision)}
            held = {f"claim {decision.vmi.namespace}/{claim.name}" for claim in decision.held}
            node = frozenset() if isinstance(decision, d.SetOpened) else _node(decision.node)
            return frozenset({f"vm {_vmi(decision.vmi)}"} | classes | held) | node
        case d.PodAdmitted() | d.LauncherAdopted() | d.SetWaits() | d.SetClosed() | d.StartHeld():
            return frozenset({f"vm {_vmi(decision.vmi)}"})
        case d.HeldPlaced() | d.HeldLost() | d.HeldAdopted():
            return _about_held(decision) | _node(decision.node)
        case d.HeldWaits():
            return _about_held(decision)
        case d.ClassGuarded() | d.ClassFreed() | d.LicenceMissing():
            return frozenset({f"class {decision.name}"})
        case d.LicenceCopied():
            return frozenset({f"class {decision.gpu_class}"})
        case d.LicenceDropped() | d.LicenceBlocked():
            return frozenset()
        case d.ClaimDropped() | d.HeldFreed():
            return frozenset({f"claim {decision.namespace}/{decision.name}"})


def _node(name: str) -> frozenset[str]:
    return frozenset({f"node {name}"} if name else ())


def _commanded(namespace: str, name: str, node: str) -> frozenset[str]:
    """A command names a VM or a held claim: which, the state says alone."""
    return frozenset({f"vm {namespace}/{name}", f"claim {namespace}/{name}"} if name else ()) | _node(node)


def _about_held(decision: d.HeldPlaced | d.HeldLost | d.HeldWaits | d.HeldAdopted) -> frozenset[str]:
    claims = {f"claim {decision.namespace}/{claim.name}" for claim in decision.claims}
    return frozenset(claims | {f"class {claim.class_name}" for claim in decision.claims})
