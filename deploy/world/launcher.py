"""The launcher pod that virt-controller renders from a VMI: the real one, the temporary, the migration target.

`containers[0]` is `compute` and carries the GPUs. The pod is posted with generateName and without a
namespace, and never with a scheduling gate: what our webhook sees is what is written here.
"""

import hashlib

from deploy.world.launcher_parts import compute_container, init_containers, pod_volumes
from deploy.world.launcher_resources import check_permitted, overhead
from deploy.world.manifests import TEMPORARY_ANNOTATION, Obj, copied, dig, meta, owner_reference
from deploy.world.virt_config import Config
from deploy.world.virt_names import (
    CREATED_BY,
    LATEST_API,
    MACHINE_TYPE_LABEL,
    MIGRATION_NAME_ANNOTATION,
    MIGRATION_UID_LABEL,
    OBSOLETE_HOST_MODEL,
    SCHEDULABLE_LABEL,
    STORAGE_API,
    UNPAUSED,
)
from schemas.kinds import VMI

LABEL_MOST = 63
ID_HEAD = 54
GRACE_S = 30
GRACE_EXTRA_S = 30
COPIED_FIELDS = (
    "tolerations",
    "schedulerName",
    "topologySpreadConstraints",
    "dnsPolicy",
    "dnsConfig",
    "resourceClaims",
    "priorityClassName",
)


def launcher_pod(vmi: Obj, config: Config, *, temporary: bool = False) -> Obj:
    """Return the pod to post for a VMI. Raises `NotRenderable` for a device that is not permitted."""
    check_permitted(vmi, config)
    name = meta(vmi)["name"]
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"virt-launcher-{name}-",
            "labels": _labels(vmi),
            "annotations": _annotations(vmi, temporary=temporary),
            "ownerReferences": [owner_reference(vmi | {"apiVersion": VMI.api_version, "kind": VMI.kind})],
        },
        "spec": {
            "affinity": _affinity(vmi),
            "automountServiceAccountToken": False,
            "containers": [compute_container(vmi, config, temporary=temporary)],
            "enableServiceLinks": False,
            "hostname": hostname(vmi),
            "initContainers": init_containers(vmi, config),
            "nodeSelector": _node_selector(vmi, config),
            "readinessGates": [{"conditionType": UNPAUSED}],
            "restartPolicy": "Never",
            "securityContext": {"fsGroup": 107, "runAsGroup": 107, "runAsNonRoot": True, "runAsUser": 107},
            "terminationGracePeriodSeconds": grace(vmi),
            "volumes": pod_volumes(vmi, config),
        },
    }
    for field in COPIED_FIELDS:
        if vmi["spec"].get(field):
            pod["spec"][field] = vmi["spec"][field]
    if not pod["spec"]["affinity"]:
        del pod["spec"]["affinity"]
    return copied(pod)


def migration_target(vmi: Obj, migration: Obj, config: Config) -> Obj:
    """Return the pod a migration posts: as the launcher's, marked, and kept off the nodes the VMI has pods on."""
    pod = launcher_pod(vmi, config)
    meta(pod)["labels"][MIGRATION_UID_LABEL] = meta(migration)["uid"]
    meta(pod)["annotations"][MIGRATION_NAME_ANNOTATION] = meta(migration)["name"]
    away = {
        "labelSelector": {"matchLabels": {CREATED_BY: meta(vmi)["uid"]}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity: Obj = pod["spec"].setdefault("affinity", {})
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity.setdefault("podAntiAffinity", {}).setdefault(required, []).append(away)
    pod["spec"]["nodeSelector"] |= dig(migration, "spec", "addedNodeSelector") or {}
    return pod


def grace(vmi: Obj) -> int:
    """Return the pod's termination grace in seconds: the VMI's own, and two quarters of a minute."""
    own = vmi["spec"].get("terminationGracePeriodSeconds")
    return (GRACE_S if own is None else int(own)) + GRACE_EXTRA_S


def hostname(vmi: Obj) -> str:
    """Return the guest's hostname: its own or the VMI's name up to a dot, cut to what a label value holds."""
    text: str = vmi["spec"].get("hostname") or meta(vmi)["name"]
    return text.split(".", maxsplit=1)[0][:LABEL_MOST].rstrip("-")


def instance_id(name: str) -> str:
    """Return the label value that names a VMI: the name, or its head and a digest where it is too long."""
    if len(name) <= LABEL_MOST:
        return name
    return f"{name[:ID_HEAD]}-{hashlib.sha1(name.encode()).hexdigest()[:8]}"  # noqa: S324 - KubeVirt's choice


def _labels(vmi: Obj) -> Obj:
    return dict(meta(vmi).get("labels") or {}) | {
        "kubevirt.io": "virt-launcher",
        CREATED_BY: meta(vmi)["uid"],
        "vm.kubevirt.io/name": hostname(vmi),
        "vmi.kubevirt.io/id": instance_id(meta(vmi)["name"]),
    }


def _annotations(vmi: Obj, *, temporary: bool) -> Obj:
    dropped = ("kubectl.kubernetes.io", STORAGE_API, LATEST_API)
    kept = {name: value for name, value in (meta(vmi).get("annotations") or {}).items() if not name.startswith(dropped)}
    name = meta(vmi)["name"]
    freezer = f'["/usr/bin/virt-freezer", "--%s", "--name", "{name}", "--namespace", "{meta(vmi)["namespace"]}"]'
    kept |= {
        "descheduler.alpha.kubernetes.io/request-evict-only": "",
        "kubectl.kubernetes.io/default-container": "compute",
        "kubevirt.io/domain": name,
        "kubevirt.io/memory-overhead-bytes": str(overhead(vmi)),
        "kubevirt.io/migrationTransportUnix": "true",
        "post.hook.backup.velero.io/command": freezer % "unfreeze",
        "post.hook.backup.velero.io/container": "compute",
        "pre.hook.backup.velero.io/command": freezer % "freeze",
        "pre.hook.backup.velero.io/container": "compute",
        "pre.hook.backup.velero.io/timeout": "60s",
    }
    if temporary:
        kept[TEMPORARY_ANNOTATION] = "true"
    return kept


def _node_selector(vmi: Obj, config: Config) -> Obj:
    architecture = vmi["spec"].get("architecture") or "amd64"
    machine = dig(vmi, "spec", "domain", "machine", "type") or "q35"
    return (
        {SCHEDULABLE_LABEL: "true", "kubernetes.io/arch": architecture, f"{MACHINE_TYPE_LABEL}{machine}": "true"}
        | dict(config.node_selector)
        | (vmi["spec"].get("nodeSelector") or {})
    )


def _affinity(vmi: Obj) -> Obj:
    affinity = copied(vmi["spec"].get("affinity") or {})
    model = dig(vmi, "spec", "domain", "cpu", "model") or ""
    if model not in {"", "host-model"}:
        return affinity
    fresh = {"key": OBSOLETE_HOST_MODEL, "operator": "DoesNotExist"}
    required: Obj = affinity.setdefault("nodeAffinity", {}).setdefault(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    )
    # Terms are ORed: the requirement is added to each, or is the only one.
    terms: list[Obj] = required.setdefault("nodeSelectorTerms", [])
    if not terms:
        terms.append({})
    for term in terms:
        term.setdefault("matchExpressions", []).append(dict(fresh))
    return affinity
