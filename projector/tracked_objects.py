"""Pods, volume claims, services and monitors, from bytes to what workload accounting knows of them (W1).

What is counted: of a pod the sum of its containers' requests, of a volume claim the capacity it was given, of a
load balancer its addresses. A pod's annotation says otherwise where what it really takes is not in its requests.
"""

from typing import Final

import msgspec
import structlog

from projector.amounts import total
from projector.mirror import Head, Read
from projector.tracked import Monitor, Sort, Tracked
from schemas import names
from schemas.labels import label_value
from schemas.quantity import MalformedQuantity
from schemas.workloads import MonitorSpec, MonitorStatus

READY: Final = "Ready"
TRUE: Final = "True"
BOUND: Final = "Bound"
LOAD_BALANCER: Final = "LoadBalancer"
DEFAULT: Final = "default"

log = structlog.get_logger()


class _Metadata(Head, frozen=True, rename="camel"):
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None

    def annotation(self, key: str) -> str:
        return (self.annotations or {}).get(key, "")


class _Requests(msgspec.Struct, frozen=True):
    requests: dict[str, str] | None = None


class _Container(msgspec.Struct, frozen=True):
    resources: _Requests = _Requests()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _PodStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus = _PodStatus()


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    storage_class_name: str | None = None


class _ClaimStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    capacity: dict[str, str] | None = None


class _Claim(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


class _Ingress(msgspec.Struct, frozen=True):
    ip: str = ""


class _LoadBalancer(msgspec.Struct, frozen=True):
    ingress: tuple[_Ingress, ...] | None = None


class _ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    load_balancer: _LoadBalancer = _LoadBalancer()


class _ServiceSpec(msgspec.Struct, frozen=True):
    type: str = ""


class _Service(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _ServiceSpec = _ServiceSpec()
    status: _ServiceStatus = _ServiceStatus()


class _Monitor(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: MonitorSpec
    status: MonitorStatus | None = None


_pod = msgspec.json.Decoder(_Pod)
_pvc = msgspec.json.Decoder(_Claim)
_service = msgspec.json.Decoder(_Service)
_monitor = msgspec.json.Decoder(_Monitor)
_said = msgspec.json.Decoder(dict[str, str])


def read_pod(raw: msgspec.Raw | bytes) -> Tracked:
    """Read a pod: no limits, no init containers (W1); operational: the pod is ready."""
    pod = _pod.decode(raw)
    asked: dict[str, list[str]] = {}
    for container in pod.spec.containers:
        for resource, text in (container.resources.requests or {}).items():
            asked.setdefault(resource, []).append(text)
    resources: dict[str, int | str] = {resource: total(texts) for resource, texts in sorted(asked.items())}
    marks = {
        names.INSTANCE_TYPE_LABEL: pod.metadata.annotation(names.INSTANCE_TYPE_ANNOTATION),
        names.INSTANCE_PROFILE_LABEL: pod.metadata.annotation(names.INSTANCE_PROFILE_ANNOTATION),
    }
    return _tracked(
        Sort.POD,
        pod.metadata,
        resources | _overriding(pod.metadata),
        operational=any(one.type == READY and one.status == TRUE for one in pod.status.conditions or ()),
        marks={key: label_value(value) for key, value in marks.items() if value},
    )


def read_pvc(raw: msgspec.Raw | bytes) -> Tracked:
    """Read a volume claim; operational: it is bound."""
    claim = _pvc.decode(raw)
    storage_class = claim.spec.storage_class_name or DEFAULT
    capacity = sorted((claim.status.capacity or {}).items())
    resources: dict[str, int | str] = {
        names.STORAGE_KEY.format(storage_class, of): total([text]) for of, text in capacity
    }
    return _tracked(Sort.PVC, claim.metadata, resources, operational=claim.status.phase == BOUND)


def read_service(raw: msgspec.Raw | bytes) -> Tracked | None:
    """Read a load balancer, None for another service; operational: something answers from outside."""
    service = _service.decode(raw)
    if service.spec.type != LOAD_BALANCER:
        return None
    ingress = service.status.load_balancer.ingress or ()
    annotation = service.metadata.annotation
    pool = annotation(names.POOL_ANNOTATION) or annotation(names.POOL_ANNOTATION_BEFORE) or DEFAULT
    resources: dict[str, int | str] = {names.ADDRESSES_KEY.format(pool): str(sum(1 for one in ingress if one.ip))}
    return _tracked(Sort.SERVICE, service.metadata, resources, operational=bool(ingress))


READERS: dict[Sort, Read[Tracked]] = {Sort.POD: read_pod, Sort.PVC: read_pvc, Sort.SERVICE: read_service}


def read_monitor(raw: msgspec.Raw | bytes) -> Monitor:
    """Read a WorkloadMonitor."""
    found = _monitor.decode(raw)
    metadata = found.metadata
    marks = {
        key: value for key, value in (metadata.labels or {}).items() if key.startswith(names.WORKLOAD_LABEL_PREFIX)
    }
    marks.pop(names.MONITOR_LABEL, None)
    return Monitor(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        rv=metadata.resource_version,
        deleting=metadata.deletion_timestamp is not None,
        spec=found.spec,
        status=found.status or MonitorStatus(),
        marks=marks,
    )


def _tracked(
    sort: Sort,
    metadata: _Metadata,
    resources: dict[str, int | str],
    *,
    operational: bool,
    marks: dict[str, str] | None = None,
) -> Tracked:
    return Tracked(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        rv=metadata.resource_version,
        deleting=metadata.deletion_timestamp is not None,
        sort=sort,
        labels=metadata.labels or {},
        marks=marks or {},
        resources=resources,
        operational=operational,
    )


def _overriding(metadata: _Metadata) -> dict[str, int | str]:
    """Read the amounts that the pod's annotation puts in the place of its requests, as far as they can be read."""
    text = metadata.annotation(names.RESOURCES_ANNOTATION)
    if not text:
        return {}
    about = {"pod": f"{metadata.namespace}/{metadata.name}", "annotation": names.RESOURCES_ANNOTATION}
    try:
        said = _said.decode(text)
    except msgspec.DecodeError:
        log.warning("an annotation can't be read", **about, remedy='write a JSON object such as {"cpu": "2"}')
        return {}
    read: dict[str, int | str] = {}
    for resource, amount in said.items():
        try:
            read[resource] = total([amount])
        except MalformedQuantity:
            log.warning("an annotation's amount can't be read", **about, resource=resource, remedy="write a quantity")
    return read
