"""virt-api at VMI create, its rules for volumes and disks."""

import re
from collections.abc import Sequence

from binder.kube import Cause
from deploy.world.manifests import Obj, dig

INLINE_BYTES_MOST = 2048
SERIAL_MOST = 256
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
_KINDS = ("disk", "lun", "cdrom")


def volume_causes(spec: Obj) -> list[Cause]:
    """Return what virt-api has against the volumes and disks of a defaulted VMI spec."""
    volumes: Sequence[Obj] = spec.get("volumes") or ()
    devices: Obj = dig(spec, "domain", "devices") or {}
    disks: Sequence[Obj] = devices.get("disks") or ()
    named = {disk.get("name") for disk in disks}
    named |= {one.get("name") for one in devices.get("filesystems") or ()}
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        name = volume.get("name", "")
        if name in seen:
            causes.append(Cause(f"{path}.name", "volume name must be unique"))
        seen.add(name)
        if len(set(volume) - {"name"}) != 1:
            causes.append(Cause(path, "must have exactly one source type set"))
        if "secret" in volume and not dig(volume, "secret", "secretName"):
            causes.append(Cause(f"{path}.secret.secretName", "required value"))
        for source in ("cloudInitNoCloud", "cloudInitConfigDrive"):
            causes += [
                Cause(f"{path}.{source}.{field}", "must be no longer than 2048 bytes")
                for field in ("userData", "networkData")
                if len((dig(volume, source, field) or "").encode()) > INLINE_BYTES_MOST
            ]
        if name not in named:
            causes.append(Cause(path, "has neither a disk nor a filesystem of its name"))
    return causes + _disk_causes(disks, devices.get("interfaces") or (), seen)


def _disk_causes(disks: Sequence[Obj], interfaces: Sequence[Obj], volumes: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    orders: set[int] = set()
    for index, disk in enumerate(disks):
        path = f"spec.domain.devices.disks[{index}]"
        name = disk.get("name", "")
        if name in names:
            causes.append(Cause(f"{path}.name", "disk name must be unique"))
        names.add(name)
        if _DNS_LABEL.match(name) is None:
            causes.append(Cause(f"{path}.name", "must be a DNS label"))
        if name not in volumes:
            causes.append(Cause(f"{path}.name", "no volume of that name"))
        if sum(disk.get(kind) is not None for kind in _KINDS) > 1:
            causes.append(Cause(path, "can only have a single target type defined"))
        if dig(disk, "cdrom", "bus") == "virtio":
            causes.append(Cause(f"{path}.cdrom.bus", "bus type virtio is invalid for CD-ROM"))
        if dig(disk, "disk", "bus") == "sata" and dig(disk, "disk", "readonly"):
            causes.append(Cause(f"{path}.disk.readonly", "sata disk can not be read only"))
        if len(disk.get("serial") or "") > SERIAL_MOST:
            causes.append(Cause(f"{path}.serial", "must be no longer than 256 characters"))
    places = [(f"spec.domain.devices.disks[{index}]", one) for index, one in enumerate(disks)]
    places += [(f"spec.domain.devices.interfaces[{index}]", one) for index, one in enumerate(interfaces)]
    for path, one in places:
        order = one.get("bootOrder")
        if order is None:
            continue
        if order < 1:
            causes.append(Cause(f"{path}.bootOrder", "must be greater than 0"))
        if order in orders:
            causes.append(Cause(f"{path}.bootOrder", "boot order is already set on another device"))
        orders.add(order)
    return causes
