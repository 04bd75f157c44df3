"""The inside of a launcher pod: its containers and volumes, as far as the API server and a kubelet read them."""

from deploy.world.launcher_resources import compute_resources, guaranteed
from deploy.world.manifests import COMPUTE, Obj, dig, meta
from deploy.world.virt_config import Config

_PRIVATE = "/var/run/kubevirt-private"
_LOCKED: Obj = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 107,
}
_EMPTY_DIRS = ("private", "public", "sockets", "virt-bin-share-dir", "libvirt-runtime", "ephemeral-disks")
_MOUNTS: tuple[tuple[str, str], ...] = (
    (_PRIVATE, "private"),
    ("/var/run/kubevirt", "public"),
    ("/var/run/kubevirt-ephemeral-disks", "ephemeral-disks"),
    ("/var/run/libvirt", "libvirt-runtime"),
    ("/var/run/kubevirt/sockets", "sockets"),
)


def claim_name(volume: Obj) -> str:
    """Return the PVC a VMI's volume stands on; '' where it is of another kind."""
    return str(dig(volume, "persistentVolumeClaim", "claimName") or dig(volume, "dataVolume", "name") or "")


def compute_container(vmi: Obj, config: Config, *, temporary: bool) -> Obj:
    """Return the container that runs the guest; in a temporary pod it only has its volumes bound."""
    command = ["/usr/bin/virt-launcher-monitor"]
    arguments = _arguments(vmi)
    if temporary:
        command, arguments = ["/bin/bash"], ["-c", "echo", "bound PVCs"]
    return {
        "name": COMPUTE,
        "image": config.image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "args": arguments,
        "env": _environment(),
        "resources": compute_resources(vmi),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "runAsGroup": 107,
            "runAsNonRoot": True,
            "runAsUser": 107,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(vmi),
    }


def _mounts(vmi: Obj) -> list[Obj]:
    own: list[Obj] = [{"mountPath": path, "name": name} for path, name in _MOUNTS]
    files: list[Obj] = []
    images: list[Obj] = []
    for index, volume in enumerate(vmi["spec"].get("volumes") or ()):
        name = volume["name"]
        if claim_name(volume):
            files.append({"mountPath": f"{_PRIVATE}/vmi-disks/{name}", "name": name})
        elif "secret" in volume or "configMap" in volume:
            kind = "secret" if "secret" in volume else "config-map"
            files.append({"mountPath": f"{_PRIVATE}/{kind}/{name}", "name": name, "readOnly": True})
        elif "containerDisk" in volume:
            path = f"/var/run/kubevirt-image-volume/disk_{index}"
            images.append({"mountPath": path, "name": name, "readOnly": True})
    hotplug = {"mountPath": "/var/run/kubevirt/hotplug-disks/", "mountPropagation": "HostToContainer"}
    return [*own, *files, *images, hotplug | {"name": "hotplug-disks"}]


def _environment() -> list[Obj]:
    return [
        {"name": "XDG_CACHE_HOME", "value": _PRIVATE},
        {"name": "XDG_CONFIG_HOME", "value": _PRIVATE},
        {"name": "XDG_RUNTIME_DIR", "value": "/var/run"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]


def _arguments(vmi: Obj) -> list[str]:
    own = vmi["spec"].get("terminationGracePeriodSeconds")
    seconds = (30 if own is None else int(own)) + 15
    pairs = (
        ("qemu-timeout", "282s"),
        ("name", meta(vmi)["name"]),
        ("uid", meta(vmi)["uid"]),
        ("namespace", meta(vmi)["namespace"]),
        ("kubevirt-share-dir", "/var/run/kubevirt"),
        ("ephemeral-disk-dir", "/var/run/kubevirt-ephemeral-disks"),
        ("container-disk-dir", "/var/run/kubevirt/container-disks"),
        ("grace-period-seconds", str(seconds)),
        ("hook-sidecars", "0"),
        ("ovmf-path", "/usr/share/edk2/ovmf"),
        ("disk-memory-limit", "2097152000"),
        ("hypervisor", "kvm"),
    )
    words = [word for name, value in pairs for word in (f"--{name}", value)]
    return [*words, "--run-as-nonroot", "--image-volume", "--upgrade-ordinal-ifaces"]


def init_containers(vmi: Obj, config: Config) -> list[Obj]:
    """Return the sidecar that tails the guest's console and one container for each container disk."""
    limits = {"cpu": "15m", "memory": "60M"}
    tail: Obj = {
        "name": "guest-console-log",
        "image": config.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/virt-tail"],
        "args": ["--logfile", f"{_PRIVATE}/{meta(vmi)['uid']}/virt-serial0-log"],
        "env": [{"name": "VIRT_LAUNCHER_LOG_VERBOSITY", "value": "2"}],
        # A sidecar's requests add to the pod's for as long as it runs.
        "restartPolicy": "Always",
        "resources": {"limits": limits, "requests": limits if guaranteed(vmi) else {"cpu": "5m", "memory": "35M"}},
        "securityContext": _LOCKED,
        "volumeMounts": [{"mountPath": _PRIVATE, "name": "private", "readOnly": True}],
    }
    return [tail, *(_disk_container(volume) for volume in _container_disks(vmi))]


def _container_disks(vmi: Obj) -> list[Obj]:
    return [volume for volume in vmi["spec"].get("volumes") or () if "containerDisk" in volume]


def _disk_container(volume: Obj) -> Obj:
    return {
        "name": f"volume{volume['name']}",
        "image": volume["containerDisk"]["image"],
        "imagePullPolicy": volume["containerDisk"].get("imagePullPolicy") or "IfNotPresent",
        "command": ["/container-disk-binary/usr/bin/container-disk"],
        "args": ["--no-op"],
        "resources": {
            "limits": {"cpu": "10m", "memory": "40M"},
            "requests": {"cpu": "1m", "ephemeral-storage": "50M", "memory": "1M"},
        },
        "securityContext": _LOCKED,
        "volumeMounts": [{"mountPath": "/container-disk-binary", "name": "launcher-volume", "readOnly": True}],
    }


def pod_volumes(vmi: Obj, config: Config) -> list[Obj]:
    """Return the pod's volumes: KubeVirt's own, and those of the VMI that a kubelet has to mount."""
    volumes: list[Obj] = [{"emptyDir": {}, "name": name} for name in _EMPTY_DIRS]
    for volume in vmi["spec"].get("volumes") or ():
        name = volume["name"]
        if claim_name(volume):
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim_name(volume)}})
        elif "secret" in volume:
            source = {key: volume["secret"][key] for key in ("secretName", "optional") if key in volume["secret"]}
            volumes.append({"name": name, "secret": source})
        elif "configMap" in volume:
            source = {key: volume["configMap"][key] for key in ("name", "optional") if key in volume["configMap"]}
            volumes.append({"name": name, "configMap": source})
    images = [(volume["name"], volume["containerDisk"]["image"]) for volume in _container_disks(vmi)]
    if images:
        images.append(("launcher-volume", config.image))
    for name, image in images:
        volumes.append({"image": {"pullPolicy": "IfNotPresent", "reference": image}, "name": name})
    volumes.append({"emptyDir": {}, "name": "hotplug-disks"})
    return volumes
