"""What the VMI webhook must refuse, as the API server shows what a VM names."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from deploy.world.manifests import Obj, deleting, dig, meta
from schemas.kinds import GPU_CLAIM, GPU_CLASS, KUBEVIRT, NAMESPACE
from schemas.names import VGPU_LABEL
from tests.simulation.cluster import Cluster
from tests.simulation.laws.classes import elder_of
from tests.simulation.laws.holdings import entries_of


class Entry(msgspec.Struct, frozen=True):
    """What one entry comes to: its class and units; of a held claim, the resource that it was given under."""

    name: str
    count: int
    claim: Obj | None = None
    given: str = ""


def entries(cluster: Cluster, namespace: str, marked: Obj) -> Iterator[Entry | None]:
    """Yield what an object's annotation names, None for a held claim that is not there."""
    for one in entries_of(marked):
        if "className" in one:
            yield Entry(one["className"], one["count"])
            continue
        claim = cluster.find(GPU_CLAIM, f"{namespace}/{one['claimName']}")
        if claim is None:
            yield None
        else:
            given = dig(claim, "status", "resourceName") or ""
            yield Entry(claim["spec"]["className"], claim["spec"]["count"], claim, given)


def classes_of(cluster: Cluster, vmi: Obj) -> list[str]:
    """Return the classes of all that a VMI names."""
    return [one.name for one in entries(cluster, meta(vmi)["namespace"], vmi) if one is not None]


def is_refused(cluster: Cluster, vm: Obj) -> bool:
    """Say whether a VM's next VMI must be refused: what it names is not there, going, not permitted, or too much."""
    asked: Counter[str] = Counter()
    for one in entries(cluster, meta(vm)["namespace"], vm["spec"]["template"]):
        if one is None or (one.claim is not None and deleting(one.claim)):
            return True
        if _is_unfit(cluster, one) or not _is_entitled(cluster, meta(vm)["namespace"], one.name):
            return True
        asked[one.name] += one.count
    found = {name: cluster.find(GPU_CLASS, name) for name in asked}
    return any(view is None or asked[name] > view["spec"]["maxCount"] for name, view in found.items())


def _is_unfit(cluster: Cluster, one: Entry) -> bool:
    """Say whether a class gives nothing new: gone, going, or under a name that is an older one's, or not permitted."""
    view = cluster.find(GPU_CLASS, one.name)
    if view is None or (one.given or view["spec"]["resourceName"]) not in _permitted(cluster):
        return True
    return not one.given and (deleting(view) or elder_of(view, cluster.objects(GPU_CLASS)) is not None)


def _is_entitled(cluster: Cluster, namespace: str, name: str) -> bool:
    """Say whether a namespace may have units of a class: of vGPUs with the entitlement alone (A5)."""
    view, home = cluster.find(GPU_CLASS, name), cluster.find(NAMESPACE, namespace)
    labels = (meta(home).get("labels") or {}) if home is not None else {}
    return view is None or view["spec"]["mode"] != "VGPU" or labels.get(VGPU_LABEL) == "true"


def _permitted(cluster: Cluster) -> list[str]:
    table = [dig(one, "spec", "configuration", "permittedHostDevices") or {} for one in cluster.objects(KUBEVIRT)]
    return [device["resourceName"] for kinds in table for devices in kinds.values() for device in devices]
