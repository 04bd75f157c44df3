"""Admission: may this VMI start, may this launcher pass, and the sentence its owner reads if not.

Answers come from the request and the evidence in it alone, so that the same input gets the same
answer however often the API server asks (T17, C26), and nothing here looks at capacity (A11, C57).
"""

import msgspec

from binder.rules.gpu_sets import Asked, Objection, asked_for, claim_missing, class_missing, read_entries, resolved
from binder.rules.licences import licence_copy_for
from binder.rules.objections import first_objection
from schemas import names
from schemas.decisions import PodAdmitted, Refused, VmiAdmitted
from schemas.entries import ClaimEntry
from schemas.events import PodRequest, VmiRequest
from schemas.objects import Toleration
from schemas.reasons import Refusal


def answer_vmi(request: VmiRequest, policy: str) -> VmiAdmitted | Refused:
    """Answer a VMI create (A1-A4, A6, A7). `policy`: the start policy in force, written onto the VMI.

    Placing at admission (`Refuse`) books in a validating webhook, and here nothing is booked (T17). A policy
    that nobody knows is `Wait`. So is `Schedule` for a VMI that names held claims: kube-scheduler does not
    know where their units are.
    """
    who = f"VMI {request.namespace}/{request.name}" if request.name else f"a new VMI in {request.namespace}"
    entries = read_entries(request.gpus)
    if isinstance(entries, Objection):
        return _refused(request, request.name, who, entries)
    said = first_objection(request, entries)
    if said is not None:
        return _refused(request, request.name, who, said)
    holds = any(isinstance(entry, ClaimEntry) for entry in entries)
    mark = policy if policy in {names.POLICY_SCHEDULE, names.POLICY_REFUSE} else names.POLICY_WAIT
    if holds and mark == names.POLICY_SCHEDULE:
        mark = names.POLICY_WAIT
    asked = asked_for(request, entries)
    licence = licence_copy_for(asked)
    return VmiAdmitted(request.request, request.namespace, request.name, resolved(asked), mark, licence)


def answer_pod(request: PodRequest, node: str = "") -> PodAdmitted | Refused:
    """Answer a launcher create (P1-P3, T17): a gate under every policy but `Schedule`, and tolerations.

    `node`: where its VMI's set was booked at admission, under `Refuse`: then it is pinned there, and needs no gate.
    Without that booking it waits behind the gate, as under `Wait`.

    A temporary pod is gated like a launcher: it requests the GPUs, and binds the volumes where the set
    will be. A migration target is not: KubeVirt deletes it after 15 minutes behind a gate, and it never
    inherits the pin (T25). A class that is being deleted, or lost its resource name, still serves the
    VMIs that were admitted with it, so only a missing one is refused: its tolerations are unknown. So is
    that of a held claim: of one that is not there, the class is not known either.
    """
    vmi = request.vmi
    who = f"launcher pod of VMI {vmi.namespace}/{vmi.name}" if vmi.name else f"launcher pod in {request.namespace}"
    entries = read_entries(request.gpus)
    if isinstance(entries, Objection):
        return _refused(request, vmi.name, who, _stranger(request) or entries)
    asked = asked_for(request, entries)
    said = _stranger(request) or claim_missing(request, entries) or class_missing(asked)
    if said is not None:
        return _refused(request, vmi.name, who, said)
    gate = request.policy != names.POLICY_SCHEDULE and not request.migration and not node
    return PodAdmitted(request.request, vmi, gate, _tolerations(asked), node)


def in_full(toleration: Toleration) -> Toleration:
    """Return the toleration with its default operator spelled out: two that mean the same are equal (C19)."""
    return toleration if toleration.operator else msgspec.structs.replace(toleration, operator="Equal")


def controller_account(namespace: str) -> str:
    """Return the user that KubeVirt's controllers are, where it runs in that namespace."""
    return f"system:serviceaccount:{namespace}:{names.KUBEVIRT_CONTROLLER_ACCOUNT}"


def _refused(request: VmiRequest | PodRequest, name: str, who: str, said: Objection) -> Refused:
    return Refused(request.request, request.namespace, name, said.reason, f"{who} {said.sentence}")


def _stranger(request: PodRequest) -> Objection | None:
    if not request.kubevirt_namespace:
        return Objection(
            Refusal.NOT_KUBEVIRT, "can't be told from others: no KubeVirt resource says where KubeVirt runs"
        )
    account = controller_account(request.kubevirt_namespace)
    if request.user != account:
        return Objection(
            Refusal.NOT_KUBEVIRT,
            f"was not created by KubeVirt ({account}) and carries its labels: "
            f"remove the label {names.REFERENCE_LABEL} from the pod, or start a virtual machine instead",
        )
    if not request.vmi.uid or not request.vmi.name:
        return Objection(Refusal.UNKNOWN_VMI, f"has no controlling {names.VMI_KIND} among its owner references")
    return None


def _tolerations(asked: tuple[Asked, ...]) -> tuple[Toleration, ...]:
    """P3: what each class of the set tolerates, held claims' too, each once, in the order of the entries."""
    wanted = [in_full(toleration) for one in asked if one.view is not None for toleration in one.view.tolerations]
    # Keys of a dict keep the order they came in.
    return tuple(dict.fromkeys(wanted))
