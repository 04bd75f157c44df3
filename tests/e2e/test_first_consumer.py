"""Volumes that are made where their first consumer lands: KubeVirt's temporary pod decides it, and has our booking."""

from collections.abc import AsyncIterator

import pytest_asyncio

from deploy.world.virt_names import WFFC
from schemas.kinds import CRD, DATA_VOLUME, NODE, PV, PVC
from schemas.names import EPHEMERAL_ANNOTATION, HOSTNAME_LABEL
from tests.cluster.api import Api, Object
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.volumes import CLASSES, claim_on, is_bound, volume
from tests.e2e.witness import gates, pinned_node

_SELECTED = "volume.kubernetes.io/selected-node"


@pytest_asyncio.fixture
async def data_volumes(control_plane: ControlPlane, api: Api) -> AsyncIterator[None]:
    """DataVolumes are served: of their schema nothing matters here."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": DATA_VOLUME.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": open_schema}}
    names = {"plural": DATA_VOLUME.plural, "singular": "datavolume", "kind": DATA_VOLUME.kind}
    spec = {"group": DATA_VOLUME.group, "names": names, "scope": "Namespaced", "versions": [version]}
    name = f"{DATA_VOLUME.plural}.{DATA_VOLUME.group}"
    body = {"apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": {"name": name}, "spec": spec}
    await api.create(CRD.path(), body)

    async def served() -> bool:
        return control_plane.admin.request("GET", DATA_VOLUME.path())[0] == 200

    await eventually(served, "DataVolumes are served")
    yield
    await api.delete(CRD.path(name=name))


async def test_a_temporary_pod_lands_where_the_set_will_be(data_volumes: None, program: Stack) -> None:
    """P3, T25: the pod that binds the volume is gated and pinned like the launcher after it; both are one booking."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.node("n2", {L40S: 1})
    late = f"{program.tenant}-late"
    late_binding = {"provisioner": "example.org/by-hand", "volumeBindingMode": WFFC}
    await program.api.create(CLASSES, {"metadata": {"name": late}, **late_binding})
    await _data_volume(program, "disk", late)
    await program.vm("vm1", [("l40s", 1)], volumes=["disk"])

    node = await _selected(program, "disk")
    [temporary] = await program.launchers("vm1")
    assert EPHEMERAL_ANNOTATION in temporary["metadata"]["annotations"]
    assert pinned_node(temporary) == node
    await program.vm("vm2", [("l40s", 1)])
    assert {node, await program.running("vm2")} == {"n1", "n2"}
    await program.vm("vm3", [("l40s", 1)])
    await program.waiting("vm3", "NoRoom")

    await _provide(program, "disk", node, late)
    assert await program.running("vm1") == node
    [launcher] = await program.launchers("vm1")
    assert EPHEMERAL_ANNOTATION not in launcher["metadata"]["annotations"]
    assert pinned_node(launcher) == node
    assert await program.bound("vm1") == [node]
    assert len(await program.gated("vm3")) == 1
    assert all(len(nodes) == 1 for nodes in program.witness.bookings.values())
    await program.verified()
    await program.api.delete(f"{CLASSES}/{late}")


async def test_under_refuse_it_lands_where_the_set_is_booked(data_volumes: None, program: Stack) -> None:
    """P1, T25: booked at admission, the temporary pod is pinned at its creation, and so is the launcher after it."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.policy("Refuse")
    late = f"{program.tenant}-late"
    late_binding = {"provisioner": "example.org/by-hand", "volumeBindingMode": WFFC}
    await program.api.create(CLASSES, {"metadata": {"name": late}, **late_binding})
    await _data_volume(program, "disk", late)
    await program.vm("vm1", [("l40s", 1)], volumes=["disk"])

    assert await _selected(program, "disk") == "n1"
    [temporary] = await program.launchers("vm1")
    assert EPHEMERAL_ANNOTATION in temporary["metadata"]["annotations"]
    assert (gates(temporary), pinned_node(temporary)) == ([], "n1")
    await _provide(program, "disk", "n1", late)
    assert await program.running("vm1") == "n1"
    [launcher] = await program.launchers("vm1")
    assert EPHEMERAL_ANNOTATION not in launcher["metadata"]["annotations"]
    assert (gates(launcher), pinned_node(launcher)) == ([], "n1")
    assert await program.bound("vm1") == ["n1"]
    await program.verified()
    await program.api.delete(f"{CLASSES}/{late}")


async def _data_volume(program: Stack, name: str, storage_class: str) -> None:
    """Create a DataVolume that waits for its first consumer, and its PVC, as CDI does."""
    body = {"apiVersion": DATA_VOLUME.api_version, "kind": DATA_VOLUME.kind, "metadata": {"name": name}}
    made = await program.api.create(DATA_VOLUME.path(program.tenant), body | {"status": {"phase": WFFC}})
    owner = {"apiVersion": DATA_VOLUME.api_version, "kind": DATA_VOLUME.kind, "name": name}
    owners = [owner | {"uid": made["metadata"]["uid"], "controller": True}]
    claim = claim_on(name, storage_class=storage_class, ownerReferences=owners)
    await program.api.create(PVC.path(program.tenant), claim)


async def _selected(program: Stack, name: str) -> str:
    """Wait until kube-scheduler says on which node the PVC's first consumer lands; return it."""

    async def node() -> str:
        found = await program.api.get(PVC.path(program.tenant, name))
        return str((found["metadata"].get("annotations") or {}).get(_SELECTED, ""))

    return await eventually(node, f"a node is selected for the PVC {name}")


async def _provide(program: Stack, name: str, node: str, storage_class: str) -> None:
    """Make the volume on the node, as a provisioner does, and end the import, as CDI does."""
    found: Object = await program.api.get(NODE.path(name=node))
    labels = {HOSTNAME_LABEL: found["metadata"]["labels"][HOSTNAME_LABEL]}
    body = volume(f"{program.tenant}-{name}", program.tenant, name, labels, storage_class)
    await program.api.create(PV.path(), body)
    await is_bound(program, name)
    await program.api.patch(DATA_VOLUME.path(program.tenant, name), {"status": {"phase": "Succeeded"}})
