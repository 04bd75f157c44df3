"""What is asked about writes that declare units: VMs, pools, replica sets, bare VMIs, counts of replicas (B2, T20).

The API server asks about new entries, more replicas and another owner alone: never about what is being deleted, a
status or a finalizer. It passes over us where we can't be reached, and we pass what we can't check: whoever binds
checks again.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from binder.rules.admission import controller_account
from schemas import names
from schemas.admission import (
    BUDGETS_DOMAIN,
    CONTROL_PLANE_GROUP,
    CONTROLLER_MANAGER,
    CREATE,
    SCALE,
    UPDATE,
    WRITE_PATH,
)
from schemas.events import Writable, WriteRequest
from schemas.kinds import VM, VM_POOL, VMI, VMI_REPLICA_SET, Resource
from schemas.objects import Gone, KubeVirtView, PoolView, ReplicaSetView, VmiView
from webhooks import cel
from webhooks.configuration import Service, client_config, entry
from webhooks.reviews import UNREADABLE, MalformedReview, Review

TIMEOUT_S = 5
"""The API server's patience: above our own for these, so that it is we who say what could not be checked."""

DECLARING = {kind.plural: kind for kind in (VM, VM_POOL, VMI_REPLICA_SET, VMI)}
SCALED = (VM_POOL, VMI_REPLICA_SET)

NOT_GOING, ASKS_FOR_MORE = "is-not-being-deleted", "asks-for-more"
"""Match conditions: what keeps the API server from asking."""

TEMPLATES = {
    VM.plural: "spec.template",
    VM_POOL.plural: "spec.virtualMachineTemplate.spec.template",
    VMI_REPLICA_SET.plural: "spec.template",
    VMI.plural: "",
}
"""Where each kind has its template, '' where it is one itself."""


class _ScaleSpec(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Scale(msgspec.Struct, frozen=True):
    spec: _ScaleSpec = _ScaleSpec()


_scale = msgspec.json.Decoder(_Scale)


def write_webhooks(at: Service | str, ca_bundle: bytes) -> tuple[dict[str, Any], ...]:
    """Return the entries of the validating configuration."""
    client = client_config(at, WRITE_PATH, ca_bundle)
    return (
        _webhook(VM, "", (CREATE, UPDATE), client, _asks_more(VM)),
        _webhook(VM_POOL, "", (CREATE, UPDATE), client, _asks_more(VM_POOL)),
        _webhook(VMI_REPLICA_SET, "", (CREATE, UPDATE), client, _asks_more(VMI_REPLICA_SET)),
        _webhook(VMI, "", (CREATE, UPDATE), client, _asks_more(VMI)),
        *(_webhook(kind, SCALE, (UPDATE,), client, _more_replicas(0)) for kind in SCALED),
    )


def _webhook(
    kind: Resource, subresource: str, operations: tuple[str, ...], client: dict[str, Any], asks: str
) -> dict[str, Any]:
    return entry(
        f"{kind.plural}{'-' + subresource if subresource else ''}.{BUDGETS_DOMAIN}",
        kind,
        client,
        operations=operations,
        subresource=subresource,
        fails="Ignore",
        timeout_s=TIMEOUT_S,
        matchConditions=[
            {"name": NOT_GOING, "expression": f"!has({cel.NEW}.metadata.deletionTimestamp)"},
            {"name": ASKS_FOR_MORE, "expression": asks},
        ],
    )


def _entries(side: str, kind: Resource) -> str:
    """Return the entries of a template, '' where it has none."""
    path = "".join(f".?{field}" for field in (*filter(None, TEMPLATES[kind.plural].split(".")), "metadata"))
    return f"{side}{path}.?annotations[?'{names.GPUS_ANNOTATION}'].orValue('')"


def _more_replicas(unset: int) -> str:
    return f"{cel.NEW}.?spec.?replicas.orValue({unset}) > {cel.OLD}.?spec.?replicas.orValue({unset})"


def _owner(side: str) -> str:
    """Return the uid of what manages an object, as a list of one, or of none."""
    return f"{side}.metadata.?ownerReferences.orValue([]).filter(one, one.?controller.orValue(false)).map(one, one.uid)"


def _asks_more(kind: Resource) -> str:
    """Say whether entries are new, for more replicas, or for another owner.

    A kind that lacks replicas is the same in them, one that nobody makes in its owner; a running VMI's entries are
    kept by the policies. What an object declares counts within its owner: one that leaves it counts by itself. Where
    the owner goes and leaves it behind, nothing is asked: the garbage collector must not be held up.
    """
    new, old = _entries(cel.NEW, kind), _entries(cel.OLD, kind)
    leaves = f"!({_IS_CONTROL_PLANE}) && {_owner(cel.NEW)} != {_owner(cel.OLD)}"
    return f"{new} != '' && ({cel.IS_CREATE} || {new} != {old} || {_more_replicas(1)} || ({leaves}))"


_IS_CONTROL_PLANE = (
    f"request.userInfo.username == '{CONTROLLER_MANAGER}'"
    f" || (has(request.userInfo.groups) && '{CONTROL_PLANE_GROUP}' in request.userInfo.groups)"
)


def is_kubevirts_own(review: Review, kubevirt: KubeVirtView | None, view: VmiView) -> bool:
    """Say whether KubeVirt starts a VM or fills a replica set: what declares that was asked about when it was written.

    Only its own account is believed, and only where the VMI has an owner.
    """
    return kubevirt is not None and bool(view.owner_uid) and review.user == controller_account(kubevirt.namespace)


def scaled(review: Review, owner: Writable | Gone | None) -> Writable | None:
    """Return what a Scale makes of its owner, None where that has no GPUs or goes. Raises `MalformedReview`."""
    if not isinstance(owner, PoolView | ReplicaSetView) or owner.deleting:
        return None
    try:
        return replace(owner, replicas=_scale.decode(review.object).spec.replicas)
    except UNREADABLE as error:
        raise MalformedReview(f"the Scale can't be read: {error}") from None


def is_asked_about_later(view: VmiView) -> bool:
    """Say whether the binder asks the budgets once more before a VMI has its units: kube-scheduler does not."""
    return view.policy != names.POLICY_SCHEDULE


def request_of(review: Review, view: Writable, before: Writable | None, *, own: bool = False) -> WriteRequest:
    """Return the request as it is decided on and replayed: views alone, no body (T16)."""
    # Where the object stands is what the API server says, not what the object does (C47).
    placed = replace(view, namespace=review.namespace)
    return WriteRequest(
        request=review.uid,
        kind=review.resource.resource,
        namespace=review.namespace,
        name=review.name or view.name,
        user=review.user,
        view=placed,
        before=replace(before, namespace=review.namespace) if before is not None else None,
        own=own,
    )
