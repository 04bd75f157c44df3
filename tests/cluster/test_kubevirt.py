"""The emulated KubeVirt on a real API server: the same facts as on the model, with the real scheduler."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from deploy.world.kubevirt import KubeVirt
from schemas.kinds import POD, VM, VMI
from tests.cluster.api import JSON_PATCH, Api, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import L40S, L40S_24C, Nodes
from tests.cluster.webhooks import Served, patching, serving

Object = dict[str, Any]


def vm(name: str, *gpus: str) -> Object:
    """A VM that wants these devices and starts at once."""
    devices = {"gpus": [{"name": f"gpu{number}", "deviceName": gpu} for number, gpu in enumerate(gpus, 1)]}
    spec = {"domain": {"memory": {"guest": "1Gi"}, "devices": devices}}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"runStrategy": "Always", "template": template}
    return {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": {"name": name}, "spec": body}


@pytest_asyncio.fixture
async def kubevirt(
    control_plane: ControlPlane, api: Api, namespace: str, nodes: Nodes, tmp_path: Path
) -> AsyncIterator[KubeVirt]:
    """KubeVirt, two nodes with a card and two vGPUs each."""
    for name in ("gpu-1", "gpu-2"):
        await nodes.add(f"{namespace}-{name}", {L40S: "1", L40S_24C: "2"})
    async with kubevirt_on(control_plane, api, namespace, tmp_path) as running:
        yield running
        for name in [item["metadata"]["name"] for item in (await api.get(VM.path(namespace)))["items"]]:
            # A VM that the test itself deleted may go in between.
            with suppress(Refused):
                await api.delete(VM.path(namespace, name))
        await api.until(VM.path(namespace), lambda found: found is not None and not found["items"])
        await api.until(VMI.path(namespace), lambda found: found is not None and not found["items"])


async def phase(api: Api, namespace: str, name: str, wanted: str) -> Object:
    """Wait until a VMI has the phase; return it."""
    found = await api.until(
        VMI.path(namespace, name), lambda vmi: vmi is not None and (vmi.get("status") or {}).get("phase") == wanted
    )
    assert found is not None
    return found


async def pods(api: Api, namespace: str) -> list[Object]:
    """The pods of the namespace."""
    found: list[Object] = (await api.get(POD.path(namespace)))["items"]
    return found


async def test_a_vm_runs_on_a_node_with_its_devices_and_ends_with_all_it_made(
    kubevirt: KubeVirt, api: Api, namespace: str
) -> None:
    """VM, VMI, launcher; the real scheduler binds, the kubelet runs it; deletion leaves nothing."""
    await api.create(VM.path(namespace), vm("a", L40S_24C, L40S_24C))
    found = await phase(api, namespace, "a", "Running")
    (pod,) = await pods(api, namespace)
    assert found["status"]["nodeName"] == pod["spec"]["nodeName"]
    assert found["status"]["activePods"] == {pod["metadata"]["uid"]: pod["spec"]["nodeName"]}
    assert pod["spec"]["containers"][0]["resources"]["requests"][L40S_24C] == "2"
    assert pod["metadata"]["labels"]["app"] == "a"
    await api.until(
        VM.path(namespace, "a"), lambda one: one is not None and one["status"]["printableStatus"] == "Running"
    )
    await api.delete(VM.path(namespace, "a"))
    await api.until(VM.path(namespace, "a"), lambda one: one is None)
    assert await api.find(VMI.path(namespace, "a")) is None
    assert await pods(api, namespace) == []


async def test_what_finds_no_device_waits_and_starts_when_one_is_free(
    kubevirt: KubeVirt, api: Api, namespace: str
) -> None:
    """Two cards, three VMs: the third is unschedulable until a first one goes."""
    for name in ("a", "b"):
        await api.create(VM.path(namespace), vm(name, L40S))
        await phase(api, namespace, name, "Running")
    await api.create(VM.path(namespace), vm("c", L40S))
    await phase(api, namespace, "c", "Scheduling")
    await api.delete(VM.path(namespace, "a"))
    await phase(api, namespace, "c", "Running")


async def test_a_stranger_may_not_shape_a_vmi(kubevirt: KubeVirt, api: Api, namespace: str) -> None:
    """Spec: refused; status: put back without a word; a label of one's own: kept; /status: not served."""
    await api.create(VM.path(namespace), vm("a", L40S))
    await phase(api, namespace, "a", "Running")
    path = VMI.path(namespace, "a")
    with pytest.raises(Refused) as caught:
        await api.patch(path, {"spec": {"nodeSelector": {"x": "y"}}})
    assert caught.value.code == 422
    assert (await api.patch(path, {"status": {"phase": "Failed"}}))["status"]["phase"] == "Running"
    assert (await api.patch(path, {"metadata": {"labels": {"mine": "1"}}}))["metadata"]["labels"]["mine"] == "1"
    with pytest.raises(Refused) as caught:
        await api.patch(f"{path}/status", {"status": {"phase": "Failed"}})
    assert caught.value.code == 404


async def test_a_gated_launcher_can_be_pinned_and_let_go_in_one_patch(
    kubevirt: KubeVirt, api: Api, namespace: str, tmp_path: Path
) -> None:
    """T21: every term narrowed and the gate gone in one JSON patch that tests what was seen; the pod lands there."""
    gate = {"name": "example.org/gate"}
    add = [{"op": "add", "path": "/spec/schedulingGates", "value": [gate]}]
    hook = Served("gate", patching(add), [(POD, ["CREATE"])], mutating=True, namespace=namespace)
    look = {"metadata": {"name": "look"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}

    async def answering() -> bool:
        made = await api.create(POD.path(namespace), look, dryRun="All")
        return bool(made["spec"].get("schedulingGates") == [gate])

    async with serving(api, tmp_path / "gate", [hook], answering):
        await api.create(VM.path(namespace), vm("a", L40S_24C))
        await phase(api, namespace, "a", "Scheduling")
    (pod,) = await pods(api, namespace)
    assert pod["spec"]["schedulingGates"] == [gate]
    node = f"{namespace}-gpu-2"
    root = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    seen = required["nodeSelectorTerms"]
    pin = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": root, "value": seen},
        *[{"op": "add", "path": f"{root}/{n}/matchFields", "value": pin} for n, _ in enumerate(seen)],
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]
    await api.patch(POD.path(namespace, pod["metadata"]["name"]), patch, content=JSON_PATCH)
    assert (await phase(api, namespace, "a", "Running"))["status"]["nodeName"] == node


async def test_many_vms_at_once_all_get_their_launcher(kubevirt: KubeVirt, api: Api, namespace: str) -> None:
    """Thirty VMs at once: thirty pods, one each, and what fits runs."""
    for number in range(30):
        await api.create(VM.path(namespace), vm(f"v{number}", L40S_24C))
    await api.until(POD.path(namespace), lambda found: found is not None and len(found["items"]) == 30, 60.0)
    owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in await pods(api, namespace)}
    assert len(owners) == 30

    def four_run(found: Object | None) -> bool:
        assert found is not None
        phases = [vmi.get("status", {}).get("phase") for vmi in found["items"]]
        return phases.count("Running") == 4 and phases.count("Scheduling") == 26

    await api.until(VMI.path(namespace), four_run, 60.0)
