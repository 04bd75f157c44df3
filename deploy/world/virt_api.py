"""virt-api at VMI create: what it fills in, and what it refuses.

Pure functions: the model API server registers them as admission hooks, tests serve them over TLS as
`virt-api-mutator` and `virt-api-validator`. A webhook that sorts before them sees the VMI undefaulted.
"""

import uuid
from collections.abc import Sequence

from binder.kube import Cause
from deploy.world.amounts import memory_text, whole
from deploy.world.clock import stamp
from deploy.world.launcher_resources import guest_memory
from deploy.world.manifests import Obj, copied, dig, has_finalizer, meta
from deploy.world.virt_api_volumes import volume_causes
from deploy.world.virt_config import Config
from deploy.world.virt_names import PCI_TOPOLOGY, PENDING, VMI_FINALIZER

MAX_FACTOR = 4
RUNTIME_USER = 107
_FIRMWARE = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")


def mutate_vmi_create(vmi: Obj, config: Config, *, now: float) -> Obj:
    """Return the VMI as virt-api hands it on: defaults, a disk for every volume, finalizer, phase Pending."""
    new = copied(vmi)
    spec: Obj = new["spec"]
    domain: Obj = spec.setdefault("domain", {})
    meta(new).setdefault("annotations", {}).setdefault(PCI_TOPOLOGY, "v3")
    if not has_finalizer(new, VMI_FINALIZER):
        meta(new)["finalizers"] = [*(meta(new).get("finalizers") or ()), VMI_FINALIZER]
    spec.setdefault("architecture", "amd64")
    _default_domain(domain, new, config)
    spec.setdefault("evictionStrategy", config.eviction)
    _default_network(spec, domain)
    _default_disks(spec, domain)
    status: Obj = new.setdefault("status", {})
    status["phase"] = PENDING
    status["phaseTransitionTimestamps"] = [{"phase": PENDING, "phaseTransitionTimestamp": stamp(now)}]
    status["runtimeUser"] = RUNTIME_USER
    status["guestOSInfo"] = {}
    status["currentCPUTopology"] = {
        part: domain["cpu"][part] for part in ("cores", "sockets", "threads") if domain["cpu"].get(part)
    }
    guest = domain["memory"].get("guest")
    if guest:
        status["memory"] = {"guestAtBoot": guest, "guestCurrent": guest, "guestRequested": guest}
    return new


def _default_domain(domain: Obj, vmi: Obj, config: Config) -> None:
    machine: Obj = domain.setdefault("machine", {})
    machine["type"] = machine.get("type") or "q35"
    firmware: Obj = domain.setdefault("firmware", {})
    # A VMI posted with generateName has no name yet: its firmware is told from its spec's place alone.
    owner = f"{meta(vmi).get('namespace', '')}/{meta(vmi).get('name') or meta(vmi).get('generateName', '')}"
    firmware.setdefault("uuid", str(uuid.uuid5(_FIRMWARE, owner)))
    domain.setdefault("features", {}).setdefault("acpi", {}).setdefault("enabled", True)
    resources: Obj = domain.setdefault("resources", {})
    limits: Obj = resources.get("limits") or {}
    requests: Obj = resources.get("requests") or {}
    cpu: Obj = domain.setdefault("cpu", {})
    cpu["model"] = cpu.get("model") or "host-model"
    if not any(cpu.get(part) for part in ("cores", "sockets", "threads")):
        sockets = max(whole(limits.get("cpu") or requests.get("cpu") or 1), 1)
        cpu |= {"cores": 1, "sockets": sockets, "threads": 1}
        if config.live_update:
            cpu["maxSockets"] = MAX_FACTOR * sockets
    if "cpu" in limits and "cpu" not in requests:
        resources["requests"] = requests | {"cpu": limits["cpu"]}
    memory: Obj = domain.setdefault("memory", {})
    size = guest_memory(vmi | {"spec": {"domain": domain}})
    if size and not memory.get("guest"):
        memory["guest"] = requests.get("memory") or limits.get("memory")
    if size and config.live_update:
        memory.setdefault("maxGuest", memory_text(MAX_FACTOR * size))


def _default_network(spec: Obj, domain: Obj) -> None:
    devices: Obj = domain.setdefault("devices", {})
    if devices.get("autoattachPodInterface") is False:
        return
    if not devices.get("interfaces") and not spec.get("networks"):
        devices["interfaces"] = [{"bridge": {}, "name": "default"}]
        spec["networks"] = [{"name": "default", "pod": {}}]


def _default_disks(spec: Obj, domain: Obj) -> None:
    disks: list[Obj] = domain["devices"].get("disks") or []
    served = {disk["name"] for disk in disks if "name" in disk}
    served |= {one.get("name") for one in domain["devices"].get("filesystems") or ()}
    for volume in spec.get("volumes") or ():
        if "containerDisk" in volume:
            volume["containerDisk"].setdefault("imagePullPolicy", "IfNotPresent")
        if volume.get("name") not in served:
            disks.append({"name": volume.get("name")})
    for disk in disks:
        kind = next((kind for kind in ("disk", "lun", "cdrom") if disk.get(kind) is not None), "disk")
        disk.setdefault(kind, {})
        disk[kind]["bus"] = disk[kind].get("bus") or "sata"
    if disks:
        domain["devices"]["disks"] = disks


def validate_vmi_create(vmi: Obj, config: Config) -> tuple[Cause, ...]:
    """Return why virt-api refuses the VMI, field by field; nothing where it does not.

    Neither unique names of gpus nor permittedHostDevices are asked for here.
    """
    spec: Obj = vmi.get("spec") or {}
    domain: Obj = spec.get("domain") or {}
    devices: Obj = domain.get("devices") or {}
    causes: list[Cause] = []
    if not guest_memory(vmi) and not dig(domain, "memory", "hugepages"):
        causes.append(Cause("spec.domain.memory.guest", "no memory requested"))
    causes += _gpu_causes(devices.get("gpus") or (), "spec.domain.devices.gpus")
    causes += _gpu_causes(devices.get("hostDevices") or (), "spec.domain.devices.hostDevices")
    if devices.get("hostDevices") and not config.gate("HostDevices"):
        causes.append(Cause("spec.domain.devices.hostDevices", "Host Devices feature gate is not enabled"))
    causes += volume_causes(spec)
    return tuple(causes)


def _gpu_causes(devices: Sequence[Obj], path: str) -> list[Cause]:
    causes: list[Cause] = []
    claims = [bool(device.get("claimName") or device.get("requestName")) for device in devices]
    for index, device in enumerate(devices):
        if not device.get("name"):
            causes.append(Cause(f"{path}[{index}].name", "required value"))
        if not device.get("deviceName") and not claims[index]:
            causes.append(Cause(f"{path}[{index}].deviceName", "either deviceName or claimName must be set"))
    if any(claims) and not all(claims):
        causes.append(Cause(path, "DRA and device plugin devices cannot be mixed"))
    frames = [device for device in devices if dig(device, "virtualGPUOptions", "display", "ramFB", "enabled")]
    if len(frames) > 1:
        causes.append(Cause(path, "configuring multiple displays with ramfb is not valid"))
    return causes
