"""Requests to start: VMIs as they are created and as they will be stored, launchers; `schemas.events` has them all."""

from schemas.decisions import VmiId
from schemas.happening import FIRST_VERSION, Event
from schemas.objects import ClaimView, ClassView, Foreseen, KubeVirtView, NamespaceView


class VmiRequest(Event, frozen=True, tag="request.vmi"):
    """Admission of a VMI create: a whitelisted view (T16) and the evidence read for it (T15).

    `gpus`: the annotation. `own_gpus`, `host_devices`: device names of the VMI's own entries, ours
    (by name prefix, on re-invocation) in `bound_gpus`, as `binder.rules.admission.mark_of` spells them.
    `resource_keys`: keys under domain.resources. `marks`: labels and annotations that KubeVirt alone may
    put on launchers and would copy there. `bound_licence`: volumes and disks under our name for the licence's, as
    `binder.rules.licences.licence_marks` spells them. `classes`: named classes, those of named claims, and those whose
    resource the VMI names elsewhere, as read from the API server; `missing`: named and not there; `claims` and
    `missing_claims`, the held claims named, and `kubevirt` likewise (A8). `home`: its namespace, as it was read; None
    in logs from before it was (A5).
    """

    request: str
    namespace: str
    name: str
    user: str
    gpus: str
    own_gpus: tuple[str, ...] = ()
    bound_gpus: tuple[str, ...] = ()
    host_devices: tuple[str, ...] = ()
    resource_keys: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    bound_licence: tuple[str, ...] = ()
    classes: tuple[ClassView, ...] = ()
    missing: tuple[str, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    missing_claims: tuple[str, ...] = ()
    kubevirt: KubeVirtView | None = None
    repeats: int = 0
    version: int = FIRST_VERSION
    home: NamespaceView | None = None


class PodRequest(Event, frozen=True, tag="request.pod"):
    """Admission of a launcher create: owner by reference, GPU annotation, requester (T17, T25).

    `policy`: the reserved annotation KubeVirt copied from the VMI. `kubevirt_namespace`: where the
    KubeVirt CR read for this request stands, '' if none was found. `classes`, `claims`: as of a VMI.
    """

    request: str
    namespace: str
    vmi: VmiId
    user: str
    gpus: str
    policy: str
    kubevirt_namespace: str = ""
    classes: tuple[ClassView, ...] = ()
    missing: tuple[str, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    missing_claims: tuple[str, ...] = ()
    temporary: bool = False
    migration: bool = False
    repeats: int = 0
    version: int = FIRST_VERSION


class StartRequest(Event, frozen=True, tag="request.start"):
    """A VMI about to be stored under policy Refuse, seen with its final name and uid: book its set, or refuse it (T17).

    `asked`: the VMI as it would be stored, with evidence read anew. `launcher`: what its launcher will ask of a node.
    """

    request: str
    uid: str
    asked: VmiRequest
    launcher: Foreseen = Foreseen()
    version: int = FIRST_VERSION

    @property
    def vmi(self) -> VmiId:
        """Return the VMI that is about to be."""
        return VmiId(self.asked.namespace, self.asked.name, self.uid)


class StartWithdrawn(Event, frozen=True, tag="request.withdrawn"):
    """Whoever asked for a start gave up waiting, or its own client went: the start was refused (T18)."""

    request: str
    vmi: VmiId
    version: int = FIRST_VERSION
