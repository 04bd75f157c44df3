"""KubeVirt's objects, from bytes to views: virtual machines, their instances, and what KubeVirt permits.

Of VMs and VMIs only those matter that refer to GPUs; of their bodies only what the binder reads
gets out: cloud-init data and the like stay behind (T16).
"""

from collections.abc import Mapping

import msgspec

from ingest.metadata import Metadata, gone, head
from schemas import names
from schemas.entries import COUNT_MAX, ENTRIES_MAX, as_kept
from schemas.objects import Gone, KubeVirtView, PoolView, ReplicaSetView, VmiView, VmView


def refers(labels: Mapping[str, str | None] | None, annotations: Mapping[str, str | None] | None) -> bool:
    """Say whether these marks refer to GPUs: the label as it must be, or entries without it."""
    labelled = (labels or {}).get(names.REFERENCE_LABEL) == names.REFERENCE_VALUE
    return labelled or names.GPUS_ANNOTATION in (annotations or {})


RESOURCE_NAME_MAX = 317
"""Longest name of an extended resource."""


class _TemplateMetadata(msgspec.Struct, frozen=True):
    """Marks that no schema guards: the API server stores what is null among them, and KubeVirt takes it for ''."""

    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


class _Template(msgspec.Struct, frozen=True):
    metadata: _TemplateMetadata | None = None


class _VmSpec(msgspec.Struct, frozen=True):
    template: _Template | None = None


class _Vm(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _VmSpec = _VmSpec()


class _VmTemplate(msgspec.Struct, frozen=True):
    spec: _VmSpec = _VmSpec()


class _PoolSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int | None = None
    virtual_machine_template: _VmTemplate | None = None


class _Pool(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _PoolSpec = _PoolSpec()


class _ReplicaSetSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    template: _Template | None = None


class _ReplicaSet(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ReplicaSetSpec = _ReplicaSetSpec()


class _ClaimName(msgspec.Struct, frozen=True, rename="camel"):
    claim_name: str = ""


class _EphemeralVolume(msgspec.Struct, frozen=True, rename="camel"):
    persistent_volume_claim: _ClaimName | None = None


class _DataVolume(msgspec.Struct, frozen=True):
    name: str = ""


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """A volume of a VMI, as far as it is a PVC."""

    persistent_volume_claim: _ClaimName | None = None
    data_volume: _DataVolume | None = None
    ephemeral: _EphemeralVolume | None = None
    memory_dump: _ClaimName | None = None

    def claim(self) -> str:
        """Return the PVC behind the volume, '' where there is none; a DataVolume's has its name."""
        if self.data_volume:
            return self.data_volume.name
        source = self.ephemeral.persistent_volume_claim if self.ephemeral else None
        source = source or self.persistent_volume_claim or self.memory_dump
        return source.claim_name if source else ""


class _Gpu(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    device_name: str = ""


class _Devices(msgspec.Struct, frozen=True):
    gpus: tuple[_Gpu, ...] | None = None


class _Domain(msgspec.Struct, frozen=True):
    devices: _Devices | None = None


class _VmiSpec(msgspec.Struct, frozen=True):
    volumes: tuple[Volume, ...] | None = None
    domain: _Domain | None = None


class _Present(msgspec.Struct, frozen=True):
    """Something of which only its being there is read."""


class _VolumeStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    hotplug_volume: _Present | None = None
    persistent_volume_claim_info: _ClaimName | None = None


class _VmiStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    node_name: str = ""
    active_pods: dict[str, str] | None = None
    volume_status: tuple[_VolumeStatus, ...] | None = None


class _Vmi(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _VmiSpec = _VmiSpec()
    status: _VmiStatus | None = None


class _Device(msgspec.Struct, frozen=True, rename="camel"):
    resource_name: str = ""


class _Permitted(msgspec.Struct, frozen=True, rename="camel"):
    pci_host_devices: tuple[_Device, ...] | None = None
    mediated_devices: tuple[_Device, ...] | None = None
    usb: tuple[_Device, ...] | None = None


class _Configuration(msgspec.Struct, frozen=True, rename="camel"):
    permitted_host_devices: _Permitted | None = None


class _KubeVirtSpec(msgspec.Struct, frozen=True):
    configuration: _Configuration | None = None


class _KubeVirt(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _KubeVirtSpec = _KubeVirtSpec()


_vm = msgspec.json.Decoder(_Vm)
_vmi = msgspec.json.Decoder(_Vmi)
_pool = msgspec.json.Decoder(_Pool)
_replica_set = msgspec.json.Decoder(_ReplicaSet)
_kubevirt = msgspec.json.Decoder(_KubeVirt)


def read_vm(raw: msgspec.Raw | bytes) -> VmView | Gone:
    """Read a VM. Its own labels and annotations say nothing: KubeVirt copies the template's (N2)."""
    vm = _vm.decode(raw)
    entries = _entries(vm.spec.template)
    if entries is None:
        return gone(vm.metadata)
    owner = vm.metadata.controller()
    return VmView(**head(vm.metadata), gpus=entries, created=vm.metadata.created, owner_uid=owner.uid if owner else "")


def read_pool(raw: msgspec.Raw | bytes) -> PoolView | Gone:
    """Read a pool of VMs: the entries of its VMs' VMIs, and how many VMs; one where it doesn't say."""
    pool = _pool.decode(raw)
    made = pool.spec.virtual_machine_template
    entries = _entries(made.spec.template if made else None)
    if entries is None:
        return gone(pool.metadata)
    return PoolView(**head(pool.metadata), gpus=entries, replicas=_count(pool.spec.replicas))


def read_replica_set(raw: msgspec.Raw | bytes) -> ReplicaSetView | Gone:
    """Read a replica set of VMIs: the entries of its template, and how many VMIs; one where it doesn't say."""
    replica_set = _replica_set.decode(raw)
    entries = _entries(replica_set.spec.template)
    if entries is None:
        return gone(replica_set.metadata)
    return ReplicaSetView(**head(replica_set.metadata), gpus=entries, replicas=_count(replica_set.spec.replicas))


def _entries(template: _Template | None) -> str | None:
    """Return the entries that a template's VMIs will have, None where they refer to no GPUs."""
    marks = (template.metadata if template else None) or _TemplateMetadata()
    if not refers(marks.labels, marks.annotations):
        return None
    return as_kept((marks.annotations or {}).get(names.GPUS_ANNOTATION) or "")


def _count(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def read_vmi(raw: msgspec.Raw | bytes) -> VmiView | Gone:
    """Read a VMI: hot-plugged volumes count from the moment either spec or status names them."""
    vmi = _vmi.decode(raw)
    if not refers(vmi.metadata.labels, vmi.metadata.annotations):
        return gone(vmi.metadata)
    status = vmi.status or _VmiStatus()
    owner = vmi.metadata.controller()
    return VmiView(
        **head(vmi.metadata),
        gpus=as_kept(vmi.metadata.annotation(names.GPUS_ANNOTATION)),
        policy=vmi.metadata.annotation(names.POLICY_ANNOTATION),
        phase=status.phase,
        node=status.node_name,
        active_pods=status.active_pods or {},
        volumes=_claims(vmi.spec.volumes or (), status.volume_status or ()),
        owner_uid=owner.uid if owner else "",
        created=vmi.metadata.created,
        devices=_resolved(vmi.spec.domain),
    )


def _resolved(domain: _Domain | None) -> tuple[str, ...]:
    """Return the resource of each entry, as our webhook wrote its devices: named by entry and unit (A1)."""
    found: dict[int, str] = {}
    for gpu in (domain.devices.gpus if domain and domain.devices else None) or ():
        entry, _, unit = gpu.name.removeprefix(names.GPU_ENTRY_PREFIX).partition("-")
        if not (gpu.name.startswith(names.GPU_ENTRY_PREFIX) and _is_below(entry, ENTRIES_MAX)):
            continue
        same = found.setdefault(int(entry), gpu.device_name) == gpu.device_name
        if not (same and _is_below(unit, COUNT_MAX) and len(gpu.device_name) <= RESOURCE_NAME_MAX):
            found[int(entry)] = ""
    return tuple(found.get(index, "") for index in range(max(found, default=-1) + 1))


def _is_below(text: str, most: int) -> bool:
    """Say whether this is a number from 0 to below `most`, as we write it."""
    return (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(most))
        and str(int(text)) == text
        and int(text) < most
    )


def _claims(volumes: tuple[Volume, ...], plugged: tuple[_VolumeStatus, ...]) -> tuple[str, ...]:
    named = [volume.claim() for volume in volumes]
    hot = [
        status.persistent_volume_claim_info.claim_name
        for status in plugged
        if status.hotplug_volume is not None and status.persistent_volume_claim_info
    ]
    return tuple(dict.fromkeys(claim for claim in [*named, *hot] if claim))


def read_kubevirt(raw: msgspec.Raw | bytes) -> KubeVirtView:
    """Read the KubeVirt CR: the resource names it permits, sorted; an empty table permits none (A6)."""
    found = _kubevirt.decode(raw)
    table = found.spec.configuration.permitted_host_devices if found.spec.configuration else None
    if table is None:
        return KubeVirtView(**head(found.metadata))
    devices = [*(table.pci_host_devices or ()), *(table.mediated_devices or ()), *(table.usb or ())]
    resources = dict.fromkeys(device.resource_name for device in devices if device.resource_name)
    return KubeVirtView(**head(found.metadata), permitted=tuple(sorted(resources)))
