"""Effects as bytes: the objects and patches that go to the API server."""

from collections.abc import Iterable

import msgspec

from projector.effects import CreateClaim, Pin, Warn, WriteStatus
from schemas import names, pinning
from schemas.claims import PLACED_CONDITION, AttachedTo, ClaimSpec, ClaimStatus
from schemas.conditions import Condition, ShownStamp, Truth, changed_at, condition_of
from schemas.kinds import VMI
from schemas.labels import label_value
from schemas.pinning import pinned, pinned_alone
from schemas.writes import (
    NOTE_BYTES_MAX,
    BlockingOwner,
    NewClaim,
    NewEvent,
    NewMetadata,
    ObjectReference,
)

ACTION = "Placing"
_encode = msgspec.json.Encoder().encode


def claim_body(effect: CreateClaim) -> bytes:
    """Return the claim to be created."""
    vmi = effect.vmi
    labels = {
        names.TEMPLATE_LABEL: names.REFERENCE_VALUE,
        names.CLASS_LABEL: label_value(effect.class_name),
        names.MANAGED_BY_LABEL: names.FIELD_MANAGER,
    }
    owner = BlockingOwner(VMI.api_version, VMI.kind, vmi.name, vmi.uid, block=False)
    metadata = NewMetadata(effect.name, vmi.namespace, labels, (owner,))
    return _encode(NewClaim(metadata, ClaimSpec(effect.class_name, effect.count)))


def status_patch(effect: WriteStatus, *, uid: str, generation: int, before: Iterable[Condition], now: str) -> bytes:
    """Return the patch of a claim's status. `before`: the conditions it shows, `now`: RFC 3339."""
    status = Truth.TRUE if effect.placed else Truth.FALSE
    since = changed_at(condition_of(before, PLACED_CONDITION), status, now)
    condition = Condition(PLACED_CONDITION, status, effect.reason, effect.message, since, generation)
    shown = ClaimStatus(
        phase=effect.phase,
        node_name=effect.node,
        resource_name=effect.resource,
        attached_to=AttachedTo(effect.attached.name, effect.attached.uid) if effect.attached is not None else None,
        stamp=ShownStamp.of(effect.stamp),
        conditions=(condition,),
    )
    # `add` replaces the whole status: nothing of an older decision stays beside the new one.
    return _encode([_test(pinning.UID_PATH, uid), _add(pinning.STATUS_PATH, shown)])


def pin_patch(effect: Pin, affinity: pinning.Affinity | None = None) -> bytes:
    """Return the one patch that pins and ungates, on condition that the pod is still what was decided on.

    `affinity`: the pod's, freshly read; asked for only where no required terms were seen, since what
    else stands there decides where the first term is put.
    """
    gate = [pinning.Gate(names.GATE)]
    operations = [_test(pinning.UID_PATH, effect.pod_uid), _test(pinning.GATES_PATH, gate)]
    if effect.terms:
        terms = pinned(effect.terms, effect.node)
        operations += [_test(pinning.TERMS_PATH, effect.terms), _replace(pinning.TERMS_PATH, terms)]
    else:
        operations += _first_term(effect.node, affinity)
    return _encode([*operations, {"op": "remove", "path": pinning.GATES_PATH}])


def _first_term(node: str, affinity: pinning.Affinity | None) -> list[dict[str, object]]:
    required = pinning.NodeSelector(pinned_alone(node))
    if affinity is None:
        value: object = pinning.Affinity(pinning.NodeAffinity(required))
        path = pinning.AFFINITY_PATH
    elif affinity.node_affinity is None:
        value, path = pinning.NodeAffinity(required), pinning.NODE_AFFINITY_PATH
    else:
        value, path = required, pinning.REQUIRED_PATH
    return [_test(path, None), _add(path, value)]


def event_body(effect: Warn, *, now: str, instance: str) -> bytes:
    """Return the Warning event on the VMI or claim. `now`: RFC 3339 with microseconds."""
    vmi, about = effect.vmi, effect.about
    return _encode(
        NewEvent(
            metadata=NewMetadata(effect.name, vmi.namespace),
            event_time=now,
            reporting_controller=names.FIELD_MANAGER,
            reporting_instance=instance[:128],
            action=ACTION,
            reason=effect.reason,
            regarding=ObjectReference(about.api_version, about.kind, vmi.namespace, vmi.name, vmi.uid),
            note=effect.message.encode()[:NOTE_BYTES_MAX].decode(errors="ignore"),
        )
    )


def _test(path: str, value: object) -> dict[str, object]:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def _replace(path: str, value: object) -> dict[str, object]:
    return {"op": "replace", "path": path, "value": value}
