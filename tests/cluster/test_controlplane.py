"""The control plane that the other tests stand on: what they take for granted of it holds."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.child import ChildFailed
from tests.cluster import users
from tests.cluster.api import Api, Refused
from tests.cluster.build import COMPONENTS, Programs
from tests.cluster.controlplane import ControlPlane
from tests.cluster.given import Cluster, GivenCluster
from tests.cluster.nodes import L40S, L40S_24C, Nodes

NO_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "no-such-uid"}
VMIS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances"


def configmap(name: str, **metadata: object) -> dict[str, Any]:
    """A small object to write and read."""
    return {"metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def vmi(name: str) -> dict[str, Any]:
    """The least that KubeVirt takes for a VMI, and a field that our CRD does not name."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name},
        "spec": {"domain": {"devices": {"gpus": [{"name": "g"}]}, "memory": {"guest": "1Gi"}}},
    }


def pod(name: str, resource: str, *, gated: bool = False) -> dict[str, Any]:
    """A pod that asks for one unit of a resource."""
    limits = {"cpu": "1", resource: "1"}
    spec: dict[str, Any] = {"containers": [{"name": "compute", "image": "none", "resources": {"limits": limits}}]}
    if gated:
        spec["schedulingGates"] = [{"name": "example.org/gate"}]
    return {"metadata": {"name": name}, "spec": spec}


async def test_objects_are_written_read_and_deleted(api: Api, namespace: str) -> None:
    """Create, read, patch, list and delete work, each under its own resourceVersion."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    created = await api.create(path, configmap("one"))
    patched = await api.patch(f"{path}/one", {"data": {"b": "2"}})
    listed = [item["metadata"]["name"] for item in (await api.get(path))["items"]]
    await api.delete(f"{path}/one")

    assert patched["data"] == {"a": "1", "b": "2"}
    assert patched["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]
    assert "one" in listed
    assert await api.find(f"{path}/one") is None


async def test_garbage_goes_with_its_owner(api: Api, namespace: str) -> None:
    """The controller manager deletes a dependent whose owner is gone, and one whose owner never was."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = await api.create(path, configmap("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await api.create(path, configmap("dependent", ownerReferences=[reference]))
    await api.create(path, configmap("orphan", ownerReferences=[NO_OWNER]))

    assert await api.until(f"{path}/orphan", lambda found: found is None) is None
    assert await api.find(f"{path}/dependent") is not None
    await api.delete(f"{path}/owner")
    assert await api.until(f"{path}/dependent", lambda found: found is None) is None


async def test_the_scheduler_binds_what_is_not_gated(api: Api, namespace: str, nodes: Nodes) -> None:
    """A pod without gate goes to the node that has its device; a gated one waits, and its gate can be taken off."""
    await nodes.add("gpu-1", {L40S_24C: "2"})
    await nodes.add("gpu-2", {L40S: "1"})
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(path, pod("free", L40S_24C))
    await api.create(path, pod("gated", L40S, gated=True))

    bound = await api.until(f"{path}/free", lambda found: bool(found and found["spec"].get("nodeName")))
    assert bound is not None
    assert bound["spec"]["nodeName"] == "gpu-1"
    held = await api.get(f"{path}/gated")
    assert held["status"]["conditions"][0]["reason"] == "SchedulingGated"
    await api.patch(f"{path}/gated", {"spec": {"schedulingGates": None}})
    freed = await api.until(f"{path}/gated", lambda found: bool(found and found["spec"].get("nodeName")))
    assert freed is not None
    assert freed["spec"]["nodeName"] == "gpu-2"
    for name in ("free", "gated"):
        await api.delete(f"{path}/{name}", gracePeriodSeconds="0")


async def test_nodes_change_as_told(api: Api, nodes: Nodes) -> None:
    """Quantities, labels, taints, readiness and cordoning change one by one; condition taints come and go."""
    own = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    await nodes.add("changing", {L40S_24C: "2"}, labels={"zone": "a"}, taints=[own])
    before = await api.get("/api/v1/nodes/changing")
    assert before["spec"]["taints"] == [own]
    assert before["status"]["allocatable"][L40S_24C] == "2"

    await nodes.allocatable("changing", {L40S_24C: "0", "cpu": None})
    await nodes.label("changing", {"zone": None, "room": "b"})
    await nodes.ready("changing", ready=False)
    await nodes.cordon("changing")
    after = await api.get("/api/v1/nodes/changing")
    assert after["status"]["allocatable"][L40S_24C] == "0"
    assert "cpu" not in after["status"]["allocatable"]
    assert after["metadata"]["labels"]["room"] == "b"
    assert "zone" not in after["metadata"]["labels"]
    assert after["status"]["conditions"][0]["status"] == "False"
    assert after["spec"]["unschedulable"] is True
    assert len(after["spec"]["taints"]) == 4

    await nodes.ready("changing", ready=True)
    await nodes.cordon("changing", cordoned=False)
    assert (await api.get("/api/v1/nodes/changing"))["spec"]["taints"] == [own]


async def test_a_vmi_has_no_status_subresource(api: Api, namespace: str) -> None:
    """A VMI's status is written with the whole object and raises its generation; unknown fields are kept."""
    path = VMIS.format(namespace)
    created = await api.create(path, vmi("one"))
    updated = await api.patch(f"{path}/one", {"status": {"phase": "Scheduling"}})

    assert created["spec"]["domain"]["memory"] == {"guest": "1Gi"}
    assert updated["status"]["phase"] == "Scheduling"
    assert updated["metadata"]["generation"] == created["metadata"]["generation"] + 1
    with pytest.raises(Refused, match="404"):
        await api.patch(f"{path}/one/status", {"status": {"phase": "Running"}})


async def test_other_kubevirt_kinds_keep_status_apart(api: Api, namespace: str) -> None:
    """A VM's status is written through its subresource alone, and leaves the generation."""
    path = f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines"
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "one"},
        "spec": {"runStrategy": "Always", "template": {"spec": vmi("one")["spec"]}},
    }
    created = await api.create(path, body)
    ignored = await api.patch(f"{path}/one", {"status": {"printableStatus": "Running"}})
    updated = await api.patch(f"{path}/one/status", {"status": {"printableStatus": "Running"}})

    assert "status" not in ignored
    assert updated["status"]["printableStatus"] == "Running"
    assert updated["metadata"]["generation"] == created["metadata"]["generation"]


async def test_users_may_do_what_their_roles_say(cluster: Cluster, api: Api, namespace: str) -> None:
    """A tenant may do nothing until a role is bound in its namespace; virt-controller and gpubinder may work."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    async with Api(cluster.kubeconfig(users.TENANT)) as tenant:
        with pytest.raises(Refused, match="403"):
            await tenant.get(path)
        await api.create(*users.binding(users.TENANT, "view", namespace))

        # RBAC reads its own objects through a watch: the binding holds a moment later.
        await tenant.until(path, lambda pods: pods is not None, allow=403)
        with pytest.raises(Refused, match="403"):
            await tenant.create(path, pod("mine", L40S))
    for user in (users.KUBEVIRT, users.GPUBINDER):
        async with Api(cluster.kubeconfig(user)) as working:
            assert "items" in await working.get(path)
            me = await working.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
            assert me["status"]["userInfo"]["username"] == user.name


@pytest.mark.parametrize("component", COMPONENTS)
async def test_a_killed_component_comes_back(
    control_plane: ControlPlane, api: Api, namespace: str, component: str
) -> None:
    """Whatever is killed with -9 and started again, the data is there and writing goes on."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.create(path, configmap("before"))
    await control_plane.restart(component)

    assert (await api.get(f"{path}/before"))["data"] == {"a": "1"}
    assert await api.create(path, configmap("after"))


async def test_what_a_test_broke_is_healed(control_plane: ControlPlane, api: Api, namespace: str) -> None:
    """Dead and frozen components work again after `heal`, which every test ends with."""
    control_plane.kill("etcd")
    control_plane.kill("kube-scheduler")
    control_plane.pause("kube-controller-manager")
    control_plane.pause("kube-apiserver")
    control_plane.heal()

    assert await api.get(f"/api/v1/namespaces/{namespace}")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.create(path, configmap("ownerless", ownerReferences=[NO_OWNER]))
    assert await api.until(f"{path}/ownerless", lambda found: found is None) is None


def test_a_start_that_fails_shows_the_log_and_leaves_nothing() -> None:
    """The error names the component and shows what it said; its directory is gone."""
    broken = Programs(dict.fromkeys(COMPONENTS, (sys.executable, "-c", "import sys; sys.exit('out of order')")))
    cluster = ControlPlane(broken)
    with pytest.raises(ChildFailed, match=r"(?s)etcd ended with code 1 before it was ready.*out of order"):
        cluster.start()

    assert not cluster.directory.exists()


async def test_a_paused_api_server_answers_once_it_goes_on(
    control_plane: ControlPlane, api: Api, namespace: str
) -> None:
    """A frozen API server keeps the connection and the request; both are served when it goes on."""
    control_plane.pause("kube-apiserver")
    request = asyncio.ensure_future(api.get(f"/api/v1/namespaces/{namespace}"))
    finished, _ = await asyncio.wait([request], timeout=0.3)
    control_plane.resume("kube-apiserver")

    assert not finished
    assert (await request)["metadata"]["name"] == namespace


async def test_compacted_revisions_are_gone(control_plane: ControlPlane, api: Api, namespace: str) -> None:
    """Once the control plane forgot them, old continue tokens, exact lists and watches get 410."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("one", "two", "three"):
        await api.create(path, configmap(name))
    page = await api.get(path, limit="1")
    revision = page["metadata"]["resourceVersion"]
    await api.patch(f"{path}/three", {"data": {"b": "2"}})
    assert await control_plane.forget() > int(revision)

    with pytest.raises(Refused, match="410"):
        await api.get(path, limit="1", **{"continue": page["metadata"]["continue"]})
    with pytest.raises(Refused, match="410"):
        await api.get(path, resourceVersion=revision, resourceVersionMatch="Exact")
    with pytest.raises(Refused, match="410"):
        async for _ in api.watch(path, revision, seconds=5):
            pass


def test_a_given_cluster_has_the_same_users(control_plane: ControlPlane) -> None:
    """From no more than an administrator's kubeconfig come working users under the names that tests rely on."""

    async def name(kubeconfig: Path) -> str:
        async with Api(kubeconfig) as client:
            me = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
            return str(me["status"]["userInfo"]["username"])

    with GivenCluster(control_plane.kubeconfig()) as first, GivenCluster(first.kubeconfig()) as given:
        for user in (users.KUBEVIRT, users.GPUBINDER, users.TENANT):
            assert asyncio.run(name(given.kubeconfig(user))) == user.name
        assert given.admin.request("GET", "/api/v1/nodes")[0] == 200
