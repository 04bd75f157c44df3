"""What a launcher's compute container requests: memory with overhead, cpu, devices, GPUs.

Held to what KubeVirt v1.9 renders: overhead 280 MiB + 8 MiB per vcpu, + 1 GiB with any GPU or host
device, + 100 MiB where cpu and memory limits make the pod Guaranteed; cpu a tenth of the vcpus.
"""

from collections import Counter

from deploy.world.amounts import MI, cpu_text, memory_text, millis, whole
from deploy.world.manifests import Obj, dig
from deploy.world.virt_config import Config

OVERHEAD = 280 * MI
OVERHEAD_PER_VCPU = 8 * MI
OVERHEAD_VFIO = 1024 * MI
OVERHEAD_GUARANTEED = 100 * MI
DEVICES = ("devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net")


class NotRenderable(Exception):
    """KubeVirt makes no pod of this VMI; the message is the one its condition shows."""


def devices(vmi: Obj) -> Counter[str]:
    """Return units per device name of gpus and hostDevices together; claims of DRA count nothing."""
    counted: Counter[str] = Counter()
    for kind in ("gpus", "hostDevices"):
        for device in dig(vmi, "spec", "domain", "devices", kind) or ():
            if device.get("deviceName") and not device.get("claimName"):
                counted[device["deviceName"]] += 1
    return counted


def check_permitted(vmi: Obj, config: Config) -> None:
    """Raise `NotRenderable` for a device the KubeVirt CR's table leaves out; no table, no check."""
    if config.permitted is None:
        return
    for kind, title in (("gpus", "GPU"), ("hostDevices", "HostDevice")):
        for device in dig(vmi, "spec", "domain", "devices", kind) or ():
            name = device.get("deviceName")
            if name and not device.get("claimName") and name not in config.permitted:
                raise NotRenderable(f"{title} {name} is not permitted in permittedHostDevices configuration")


def vcpus(vmi: Obj) -> int:
    """Return sockets x cores x threads, each 1 where it is unset."""
    topology = dig(vmi, "spec", "domain", "cpu") or {}
    total = 1
    for part in ("sockets", "cores", "threads"):
        total *= int(topology.get(part) or 1)
    return total


def guest_memory(vmi: Obj) -> int:
    """Return the guest's memory in bytes: of memory.guest, else the requests, else the limits."""
    domain = dig(vmi, "spec", "domain") or {}
    for path in (("memory", "guest"), ("resources", "requests", "memory"), ("resources", "limits", "memory")):
        if dig(domain, *path):
            return whole(dig(domain, *path))
    return 0


def guaranteed(vmi: Obj) -> bool:
    """Say whether the VMI limits both cpu and memory, which makes its pod Guaranteed."""
    limits = dig(vmi, "spec", "domain", "resources", "limits") or {}
    return "cpu" in limits and "memory" in limits


def overhead(vmi: Obj) -> int:
    """Return the bytes KubeVirt adds to the guest's memory."""
    total = OVERHEAD + OVERHEAD_PER_VCPU * vcpus(vmi)
    if devices(vmi):
        total += OVERHEAD_VFIO
    if guaranteed(vmi):
        total += OVERHEAD_GUARANTEED
    return total


def compute_resources(vmi: Obj) -> Obj:
    """Return requests and limits of the compute container.

    A device that `domain.resources` lists as well is no sum: what the VMI says wins over what was counted.
    """
    asked: Obj = dig(vmi, "spec", "domain", "resources") or {}
    asked_requests: Obj = asked.get("requests") or {}
    asked_limits: Obj = asked.get("limits") or {}
    counted = {name: str(units) for name, units in sorted(devices(vmi).items())}
    memory = asked_requests.get("memory") or asked_limits.get("memory")
    base = whole(memory) if memory else guest_memory(vmi)
    requests: Obj = {
        "cpu": cpu_text(millis(asked_requests["cpu"]) if "cpu" in asked_requests else vcpus(vmi) * 100),
        "ephemeral-storage": "50M",
        "memory": memory_text(base + overhead(vmi)),
    }
    limits: Obj = dict.fromkeys(DEVICES, "1")
    if "memory" in asked_limits:
        limits["memory"] = memory_text(whole(asked_limits["memory"]) + overhead(vmi))
    plain = {"cpu", "memory", "ephemeral-storage"}
    if "cpu" in asked_limits:
        limits["cpu"] = cpu_text(millis(asked_limits["cpu"]))
    requests |= counted | {name: str(value) for name, value in asked_requests.items() if name not in plain}
    limits |= counted | {name: str(value) for name, value in asked_limits.items() if name not in plain}
    return {"limits": limits, "requests": requests}
