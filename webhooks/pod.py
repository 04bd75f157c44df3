"""A launcher pod under review: whose it is and what it is, and the patch of an answer (P1-P3, T25)."""

import msgspec

from binder.rules.admission import in_full
from schemas import names, pinning
from schemas.admission import GATES_PATH, KUBEVIRT_GROUP
from schemas.decisions import PodAdmitted, VmiId
from schemas.events import PodRequest
from schemas.objects import Requirement, Toleration
from webhooks.evidence import Evidence
from webhooks.reviews import UNREADABLE, MalformedReview, Metadata, PatchOp, Review, annotate, pointer
from webhooks.vmi import gpus_text

_POLICY_MAX = 64


class _Gate(msgspec.Struct, frozen=True):
    name: str = ""


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[msgspec.Raw, ...] | None = None
    match_fields: tuple[msgspec.Raw, ...] | None = None


class _NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(msgspec.Struct, frozen=True, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    required: _NodeSelector | None = None


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    tolerations: tuple[Toleration, ...] | None = None
    scheduling_gates: tuple[_Gate, ...] | None = None
    affinity: _Affinity | None = None


class Pod(msgspec.Struct, frozen=True):
    """What is read of a pod. It has no uid yet, and often neither name nor namespace (C47)."""

    spec: _Spec
    metadata: Metadata = Metadata()


_decoder = msgspec.json.Decoder(Pod)


def read_pod(raw: msgspec.Raw) -> Pod:
    """Read the pod of a review. Raises `MalformedReview`, which names the field and never its value."""
    try:
        return _decoder.decode(raw)
    except UNREADABLE as error:
        raise MalformedReview(f"the Pod can't be read: {error}") from None


def is_launcher(pod: Pod) -> bool:
    """Say whether the pod carries KubeVirt's mark of a launcher; hotplug pods carry another."""
    return pod.metadata.label(names.KUBEVIRT_LABEL) == names.LAUNCHER_VALUE


def request_of(review: Review, pod: Pod, evidence: Evidence) -> PodRequest:
    """Return the request as it is decided on and replayed; the VMI is looked for in the request's namespace (C47)."""
    owner = next(
        (
            owner
            for owner in pod.metadata.owner_references or ()
            if owner.controller and owner.kind == names.VMI_KIND and owner.api_version.startswith(f"{KUBEVIRT_GROUP}/")
        ),
        None,
    )
    return PodRequest(
        request=review.uid,
        namespace=review.namespace,
        vmi=VmiId(review.namespace, owner.name if owner else "", owner.uid if owner else ""),
        user=review.user,
        gpus=gpus_text(pod.metadata),
        policy=(pod.metadata.annotation(names.POLICY_ANNOTATION) or "")[:_POLICY_MAX],
        kubevirt_namespace=evidence.kubevirt.namespace if evidence.kubevirt else "",
        classes=evidence.classes,
        missing=evidence.missing,
        claims=evidence.claims,
        missing_claims=evidence.missing_claims,
        temporary=pod.metadata.annotation(names.EPHEMERAL_ANNOTATION) is not None,
        migration=pod.metadata.label(names.MIGRATION_LABEL) is not None,
    )


def patch_of(pod: Pod, admitted: PodAdmitted) -> tuple[PatchOp, ...]:
    """Return what is still to be written: the stamp, always ours (T25), gate or pin (P1, P2), and tolerations (P3)."""
    ops = annotate(pod.metadata, names.ADMISSION_ANNOTATION, admitted.request)
    if admitted.node:
        ops += _pin(pod.spec.affinity, admitted.node)
    gates = pod.spec.scheduling_gates
    if admitted.gate and names.GATE not in {gate.name for gate in gates or ()}:
        gate = {"name": names.GATE}
        ops += (PatchOp(f"{GATES_PATH}/-", gate) if gates else PatchOp(GATES_PATH, (gate,)),)
    there = {in_full(toleration) for toleration in pod.spec.tolerations or ()}
    lacking = tuple(t for t in admitted.tolerations if in_full(t) not in there)
    at = pointer("spec", "tolerations")
    if pod.spec.tolerations:
        return ops + tuple(PatchOp(f"{at}/-", toleration) for toleration in lacking)
    return ops + ((PatchOp(at, lacking),) if lacking else ())


def _pin(affinity: _Affinity | None, node: str) -> tuple[PatchOp, ...]:
    """AND the node's name into every required term, or require it where nothing is required.

    Terms are ORed, so that one left as it was would let the pod go elsewhere; an empty term accepts no node at all.
    """
    placed = affinity.node_affinity if affinity else None
    required = placed.required if placed else None
    terms = (required.node_selector_terms if required else None) or ()
    if not terms:
        alone = pinning.NodeSelector(pinning.pinned_alone(node))
        if affinity is None:
            return (PatchOp(pinning.AFFINITY_PATH, pinning.Affinity(pinning.NodeAffinity(alone))),)
        if placed is None:
            return (PatchOp(pinning.NODE_AFFINITY_PATH, pinning.NodeAffinity(alone)),)
        return (PatchOp(pinning.REQUIRED_PATH, alone),)
    ops: tuple[PatchOp, ...] = ()
    pin = pinning.pin_of(node)
    for place, term in enumerate(terms):
        fields = term.match_fields or ()
        if (fields or term.match_expressions) and pin not in map(_requirement, fields):
            ops += (PatchOp(f"{pinning.TERMS_PATH}/{place}/matchFields", (*fields, pin)),)
    return ops


def _requirement(raw: msgspec.Raw) -> Requirement | None:
    try:
        return msgspec.json.decode(raw, type=Requirement)
    except UNREADABLE:
        return None
