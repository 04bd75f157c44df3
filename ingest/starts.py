"""A VMI that is about to be stored, from bytes to what its launcher will ask of a node, before KubeVirt renders it.

KubeVirt adds to it: memory of its own beside the guest's, cpu where the VMI names none, labels of cpu models and
machine types. What can be told from the VMI is read, the rest shows with the launcher.
"""

import msgspec

from ingest.machines import Volume
from ingest.metadata import Affinity, amounts
from schemas import names
from schemas.objects import Foreseen
from schemas.quantity import CPU

MEMORY = "memory"


class _Memory(msgspec.Struct, frozen=True):
    guest: str = ""


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Domain(msgspec.Struct, frozen=True):
    resources: _Resources | None = None
    memory: _Memory | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    domain: _Domain = _Domain()
    volumes: tuple[Volume, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    architecture: str = ""


class _Vmi(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


_vmi = msgspec.json.Decoder(_Vmi)


def read_start(raw: msgspec.Raw | bytes) -> Foreseen:
    """Read what the launcher of a VMI will ask for. Raises `msgspec.DecodeError`, `MalformedObject`."""
    spec = _vmi.decode(raw).spec
    selector = {names.SCHEDULABLE_LABEL: "true"}
    if spec.architecture:
        selector[names.ARCHITECTURE_LABEL] = spec.architecture
    asked = amounts("spec.domain.resources", _declared(spec.domain))
    claims = [volume.claim() for volume in spec.volumes or ()]
    return Foreseen(
        # KubeVirt refuses less than nothing, beside us and not before us: meanwhile it would make room on a node.
        requests={name: amount for name, amount in asked.items() if amount > 0},
        node_selector=selector | (spec.node_selector or {}),
        terms=spec.affinity.required_terms() if spec.affinity else None,
        volumes=tuple(dict.fromkeys(claim for claim in claims if claim)),
    )


def _declared(domain: _Domain) -> dict[str, str]:
    """Return cpu and memory as the launcher will at least request them: requests, else limits, else the guest's."""
    resources = domain.resources or _Resources()
    guest = domain.memory.guest if domain.memory else ""
    found = {}
    for resource, otherwise in ((CPU, ""), (MEMORY, guest)):
        said = (resources.requests or {}).get(resource) or (resources.limits or {}).get(resource) or otherwise
        if said:
            found[resource] = str(said)
    return found
