"""Views: the few fields of Kubernetes objects that the binder reads, as they travel on EVENTS.

Ingest fills them from watch bytes and drops a change that they do not show. Amounts are integers:
cpu in thousandths, memory and storage in bytes, everything else in units. Times are whole seconds
since 1970 as the API server prints them; only their order is used. None can be part of a cycle, and there
are many, so the garbage collector leaves them alone (`gc=False`).
"""

import msgspec


class Requirement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One requirement of a node selector term, in Kubernetes' own field names."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """One term: its requirements are ANDed, the terms of a list are ORed, an empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class Toleration(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A toleration as on pods: empty operator means Equal, empty effect all effects (C19)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A node's taint."""

    key: str
    value: str = ""
    effect: str = ""


class View(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What every view has: who it is and which version of it this is."""

    name: str
    uid: str
    rv: str
    namespace: str = ""
    deleting: bool = False

    @property
    def key(self) -> str:
        """Return the object's key within its kind: `namespace/name`, or the name where there is none."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class NodeView(View, frozen=True, tag="node"):
    """A node: what it offers and what it asks of pods. `ready`: the Ready condition is True."""

    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = False
    allocatable: dict[str, int] = {}


class PodView(View, frozen=True, tag="pod"):
    """A pod: where it is, what it requests in effect (C33), and what marks it as a launcher.

    `owner_uid`: uid of the controlling VMI, '' where the controller is something else.
    `terms`: required node affinity as it stands; `has_affinity`: the pod carries required terms at all.
    `ended`: phase Succeeded or Failed. `admission`: the stamp our webhook put on it (T25).
    `ran`: a container of it was started. `unschedulable`: kube-scheduler finds no node for it now.
    """

    node: str = ""
    phase: str = ""
    reason: str = ""
    ended: bool = False
    gates: tuple[str, ...] = ()
    requests: dict[str, int] = {}
    launcher: bool = False
    owner_uid: str = ""
    owner_name: str = ""
    admission: str = ""
    temporary: bool = False
    migration: bool = False
    node_selector: dict[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0
    pvcs: tuple[str, ...] = ()
    created: int = 0
    ran: bool = False
    unschedulable: bool = False


class PvView(View, frozen=True, tag="pv"):
    """A persistent volume: `terms` None means every node reaches it (C42)."""

    terms: tuple[NodeSelectorTerm, ...] | None = None


class PvcView(View, frozen=True, tag="pvc"):
    """A claim on a volume: `volume` is '' until it is bound."""

    volume: str = ""


class NamespaceView(View, frozen=True, tag="namespace"):
    """A namespace: `vgpu` is the entitlement label (A5)."""

    vgpu: bool = False


class ClassView(View, frozen=True, tag="class"):
    """A GPUClass. `max_count` None: 16 for passthrough, 1 for vGPU."""

    resource: str = ""
    mode: str = ""
    max_count: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    licence_secret: str = ""
    conflict: bool = False
    created: int = 0
    finalizers: tuple[str, ...] = ()


class Stamp(msgspec.Struct, frozen=True, order=True, omit_defaults=True, gc=False):
    """Which decision an object of ours shows (T22): generation, EVENTS sequence of its cause, place in the entry."""

    generation: int = 0
    sequence: int = 0
    entry: int = 0


class ClaimView(View, frozen=True, tag="claim"):
    """A GPUClaim as observed: it confirms what was decided, it never overrides it (T14)."""

    class_name: str = ""
    count: int = 1
    template: bool = False
    owner_uid: str = ""
    phase: str = ""
    node: str = ""
    resource: str = ""
    stamp: Stamp = Stamp()
    finalizers: tuple[str, ...] = ()
    created: int = 0


class VmView(View, frozen=True, tag="vm"):
    """A virtual machine that refers to GPUs: its declared entries, unparsed. `owner_uid`: that of the pool it is of."""

    gpus: str = ""
    created: int = 0
    owner_uid: str = ""


class PoolView(View, frozen=True, tag="pool"):
    """A pool of VMs that refer to GPUs: the entries of its template, unparsed, and how many VMs it is to have."""

    gpus: str = ""
    replicas: int = 1


class ReplicaSetView(View, frozen=True, tag="replica-set"):
    """A replica set of VMIs that refer to GPUs: the entries of its template, unparsed, and how many VMIs."""

    gpus: str = ""
    replicas: int = 1


class VmiView(View, frozen=True, tag="vmi"):
    """A virtual machine instance that refers to GPUs.

    `gpus`: the annotation, unparsed. `active_pods`: status.activePods, pod uid to node (D11).
    `volumes`: names of its PVCs, hot-plugged ones too. `priority_class` '' where none is named. `devices`: the resource
    that each entry was resolved to at admission, '' for one whose devices were not written by us alone (T24).
    """

    gpus: str = ""
    policy: str = ""
    phase: str = ""
    node: str = ""
    active_pods: dict[str, str] = {}
    volumes: tuple[str, ...] = ()
    owner_uid: str = ""
    created: int = 0
    devices: tuple[str, ...] = ()


class Foreseen(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a VMI says of its launcher before KubeVirt renders it.

    `requests`: cpu and memory as far as the VMI declares them, without what KubeVirt adds. `terms`: required node
    affinity. `volumes`: names of its PVCs.
    """

    requests: dict[str, int] = {}
    node_selector: dict[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] | None = None
    volumes: tuple[str, ...] = ()


class KubeVirtView(View, frozen=True, tag="kubevirt"):
    """The KubeVirt CR: `permitted` None means no table at all, and no check (A6)."""

    permitted: tuple[str, ...] | None = None


class SecretView(View, frozen=True, tag="secret"):
    """A licence's source, or a copy of one: never a value of it, but a keyed digest (T16).

    `keys`: what it holds. `digest`: of a source, over what is copied; of a copy, over all that it holds.
    `gpu_class`: the class label's value. `intact`: a copy that we wrote and nobody changed since.
    """

    keys: tuple[str, ...] = ()
    digest: str = ""
    gpu_class: str = ""
    intact: bool = False
    stamp: Stamp = Stamp()


class SettingsView(View, frozen=True, tag="settings"):
    """The settings ConfigMap: its data, known keys alone, unparsed."""

    data: dict[str, str] = {}


class BudgetView(View, frozen=True, tag="budget"):
    """A GPUBudget: units by key, and which place in the log its mirror shows, where it is one."""

    hard: dict[str, int] = {}
    mirrors: Stamp | None = None


class TenantView(View, frozen=True, tag="tenant"):
    """A HelmRelease of kind Tenant: the GPU keys of its resource quotas, and nothing else of its values (T16).

    `tenant`: the namespace that it makes. `unread`: GPU keys whose amount can't be read; `opaque`: the quotas
    can't be read at all. `hard` of these, once folded, is what was last known.
    """

    tenant: str = ""
    hard: dict[str, int] = {}
    unread: tuple[str, ...] = ()
    opaque: bool = False


class Gone(View, frozen=True, tag="gone"):
    """The object is gone; `rv` is the version of its deletion."""


AnyView = (
    NodeView
    | PodView
    | PvView
    | PvcView
    | NamespaceView
    | ClassView
    | ClaimView
    | VmView
    | VmiView
    | PoolView
    | ReplicaSetView
    | KubeVirtView
    | SettingsView
    | BudgetView
    | TenantView
    | SecretView
)


def rv_after(one: str, other: str) -> bool:
    """Say whether resourceVersion `one` is newer than `other`: integers of any length, compared as text (T11)."""
    return (len(one), one) > (len(other), other)
