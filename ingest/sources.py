"""What is watched: each kind with the function that reads its objects, in one table."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from binder.deep import deeply
from ingest import budgets, classes, machines, nodes, pods, settings, volumes
from ingest.digest_key import DigestKey
from ingest.metadata import Identity, MalformedObject, read_gone, read_identity
from ingest.secrets import SecretReader
from schemas import kinds
from schemas.kinds import Resource
from schemas.licences import COPIES, COPY, SOURCES
from schemas.objects import AnyView, Gone
from schemas.streams import MESSAGE_BYTES_MAX

_V = TypeVar("_V")
Read = Callable[[msgspec.Raw | bytes], AnyView | Gone]


# A view is smaller than its object, so that each fits a message alone; the API server stores less than half of this.
OBJECT_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 100_000


class Unreadable(Exception):
    """An object that can't be read: which one (as far as that could be told), and what is wrong with it."""

    def __init__(self, kind: str, identity: Identity, problem: str) -> None:
        super().__init__(f"{kind} {identity.key or 'without a name'}: {problem}")
        self.identity, self.problem = identity, problem


class Source(msgspec.Struct, frozen=True):
    """One watched kind. `namespace` '' means all of them; `name`: how messages name it, where not by its plural."""

    resource: Resource
    read: Read
    namespace: str = ""
    name: str = ""

    @property
    def kind(self) -> str:
        """How messages name the kind."""
        return self.name or self.resource.plural

    def view(self, raw: msgspec.Raw) -> AnyView | Gone:
        """Read an object; `Gone` where it does not matter. Raises `Unreadable`."""
        return self._guarded(self.read, raw)

    def gone(self, raw: msgspec.Raw) -> Gone:
        """Read a deleted object. Raises `Unreadable`."""
        return self._guarded(read_gone, raw)

    def _guarded(self, read: Callable[[msgspec.Raw | bytes], _V], raw: msgspec.Raw) -> _V:
        size = memoryview(raw).nbytes
        if size > OBJECT_BYTES_MAX:
            raise Unreadable(self.resource.kind, _identity(raw), f"{size} bytes, at most {OBJECT_BYTES_MAX} are read")
        try:
            return deeply(read, raw)
        except (msgspec.DecodeError, MalformedObject, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(self.resource.kind, _identity(raw), str(error)) from None


def _identity(raw: msgspec.Raw) -> Identity:
    try:
        return deeply(read_identity, raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Identity()


def licences(settings_namespace: str, key: DigestKey) -> tuple[Source, ...]:
    """Return what is watched for licences, once there is a key: nothing is read without it."""
    reader = SecretReader(key)
    return (
        Source(kinds.SECRET, reader.source, settings_namespace, SOURCES),
        Source(COPY, reader.copy, name=COPIES),
    )


def watched(settings_namespace: str) -> tuple[Source, ...]:
    """Return all that ingest watches but licences."""
    return (
        Source(kinds.NODE, nodes.read_node),
        Source(kinds.POD, pods.read_pod),
        Source(kinds.PV, volumes.read_pv),
        Source(kinds.PVC, volumes.read_pvc),
        Source(kinds.NAMESPACE, nodes.read_namespace),
        Source(kinds.GPU_CLASS, classes.read_class),
        Source(kinds.GPU_CLAIM, classes.read_claim),
        Source(kinds.VM, machines.read_vm),
        Source(kinds.VMI, machines.read_vmi),
        Source(kinds.VM_POOL, machines.read_pool),
        Source(kinds.VMI_REPLICA_SET, machines.read_replica_set),
        Source(kinds.KUBEVIRT, machines.read_kubevirt),
        Source(kinds.GPU_BUDGET, budgets.read_budget),
        Source(kinds.HELM_RELEASE, budgets.read_release),
        Source(kinds.CONFIGMAP, settings.read_settings, settings_namespace),
    )
