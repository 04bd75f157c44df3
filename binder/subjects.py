"""The VMs, claims, nodes and classes that an input or a decision is about, for whoever follows one of them (pure)."""

from collections.abc import Iterator

import msgspec

from binder.telling import every_claim
from schemas import decisions as d
from schemas import events as e
from schemas.objects import AnyView, ClaimView, ClassView, Gone, NodeView, PodView, VmiView, VmView


def about_event(body: bytes) -> frozenset[str]:
    """Return the subjects of an EVENTS body: `vm NAMESPACE/NAME`, `claim NAMESPACE/NAME`, `node NAME`, `class NAME`."""
    try:
        event = e.decode_event(body)
    except (e.UnknownMessage, msgspec.MsgspecError, UnicodeDecodeError):
        return frozenset()
    match event:
        case e.Changes():
            return frozenset(subject for change in event.changes for subject in _about_view(event.kind, change))
        case e.WriteRequest():
            return _commanded(event.namespace, event.name, "")
        case e.OrderRequest():
            return frozenset({f"claim {event.namespace}/{event.name}", f"class {event.class_name}"})
        case e.VmiRequest():
            return frozenset({f"vm {event.namespace}/{event.name}"})
        case e.Command():
            return _commanded(event.namespace, event.name, event.node)
        case e.PodRequest() | e.StartRequest() | e.StartWithdrawn():
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
        case d.VmiAdmitted():
            return frozenset({f"vm {decision.namespace}/{decision.name}"})
        case d.Refused() | d.WritePassed():
            return _commanded(decision.namespace, decision.name, "")
        case d.SetPlaced() | d.SetReleased() | d.NodeSkipped() | d.VmiGivenUp() | d.NodeKept():
            return frozenset({f"vm {decision.vmi.namespace}/{decision.vmi.name}"} | _node(decision.node))
        case d.SetOpened() | d.SetAdopted() | d.SetBooked():
            classes = {f"class {claim.class_name}" for claim in every_claim(decision)}
            held = {f"claim {decision.vmi.namespace}/{claim.name}" for claim in decision.held}
            node = frozenset() if isinstance(decision, d.SetOpened) else _node(decision.node)
            return frozenset({f"vm {decision.vmi.namespace}/{decision.vmi.name}"} | classes | held) | node
        case d.PodAdmitted() | d.LauncherAdopted() | d.SetWaits() | d.SetClosed() | d.StartHeld():
            return frozenset({f"vm {decision.vmi.namespace}/{decision.vmi.name}"})
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
    """A command, and an answer, name a VM or a held claim: which, the state or the request says alone."""
    return frozenset({f"vm {namespace}/{name}", f"claim {namespace}/{name}"} if name else ()) | _node(node)


def _about_held(decision: d.HeldPlaced | d.HeldLost | d.HeldWaits | d.HeldAdopted) -> frozenset[str]:
    claims = {f"claim {decision.namespace}/{claim.name}" for claim in decision.claims}
    return frozenset(claims | {f"class {claim.class_name}" for claim in decision.claims})
