"""Requests for what may be written: VMs and the like that declare units, and orders; `schemas.events` has them all."""

from schemas.happening import FIRST_VERSION, Event
from schemas.objects import ClassView, NamespaceView, PoolView, ReplicaSetView, VmiView, VmView

Writable = VmView | VmiView | PoolView | ReplicaSetView


class WriteRequest(Event, frozen=True, tag="request.write"):
    """A VM, pool, replica set or bare VMI is about to be written, or a count of replicas (B2, T20).

    `kind`: its plural. `view`: the object as it would stand; `before`: as it stands, or for a count of replicas as it
    was read: evidence (T15), None at create. `own`: KubeVirt makes it, for the owner that it names.
    """

    request: str
    kind: str
    namespace: str
    name: str
    user: str
    view: Writable
    before: Writable | None = None
    repeats: int = 0
    own: bool = False
    version: int = FIRST_VERSION


class OrderRequest(Event, frozen=True, tag="request.order"):
    """A held claim is about to be created: `count` units of a class on one node (O1).

    `classes`: its class, as read from the API server, `missing` where it isn't there; `home`: its namespace.
    """

    request: str
    namespace: str
    name: str
    user: str
    class_name: str
    count: int
    classes: tuple[ClassView, ...] = ()
    missing: tuple[str, ...] = ()
    home: NamespaceView | None = None
    repeats: int = 0
    version: int = FIRST_VERSION
