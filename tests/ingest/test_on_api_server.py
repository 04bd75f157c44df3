"""Ingest on a real API server: forgotten versions, kinds that come late, marks on demand, a large relist."""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import pytest_asyncio

from binder.kube import ApiError, Kube
from binder.kube_client import KubeClient
from ingest.credit import IN_FLIGHT_MAX
from schemas import kinds
from schemas.events import CHANGES_PER_CHUNK_MAX, Changes, NotServed, SessionOpened, SessionSynced
from schemas.objects import PoolView
from tests.binder.waiting import eventually
from tests.cluster import users
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.given import Cluster
from tests.cluster.nodes import L40S, Nodes
from tests.ingest.following import Leader, until
from tests.ingest.given import given
from tests.ingest.real import following, settled, synced
from tests.ingest.troubled import Troubled

APISERVER = "kube-apiserver"


@pytest_asyncio.fixture
async def client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """The client that ingest uses in production, as the program's own user."""
    client = await KubeClient.connect(kubeconfig=str(cluster.kubeconfig(users.GPUBINDER)))
    yield client
    await client.close()


def launcher(namespace: str, name: str) -> dict[str, Any]:
    """Return a launcher behind a gate as a client writes it."""
    pod = given("launcher", metadata__name=name, metadata__namespace=namespace, spec__priority=None, status=None)
    for field in ("uid", "resourceVersion", "generateName", "creationTimestamp", "ownerReferences"):
        pod["metadata"].pop(field, None)
    pod["spec"].pop("priorityClassName")
    pod["spec"]["volumes"] = [volume for volume in pod["spec"]["volumes"] if "ephemeral" not in volume]
    return pod


async def test_the_fold_is_the_world(client: KubeClient, api: Api, nodes: Nodes, namespace: str) -> None:
    """Objects of every group written, changed and deleted on a real server end folded as it holds them."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with following(client) as (ingest, leader):
        await nodes.add(f"{namespace}-a", {L40S: "8"}, labels={"zone": "a"})
        await nodes.add(f"{namespace}-b")
        await api.create(pods, launcher(namespace, "one"))
        await api.create(pods, launcher(namespace, "two"))
        await settled(client, ingest, leader)
        assert leader.folded()["pods"][f"{namespace}/one"].uid
        await nodes.cordon(f"{namespace}-a")
        await nodes.remove(f"{namespace}-b")
        await api.patch(f"{pods}/one", {"metadata": {"annotations": {"cozystack.io/gpu-admission": "r1"}}})
        await api.delete(f"{pods}/two")
        await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"cozystack.io/vgpu": "true"}}})
        await settled(client, ingest, leader)
        tables = leader.folded()
    assert f"{namespace}/two" not in tables["pods"]
    assert f"{namespace}-b" not in tables["nodes"]


async def test_c22_a_forgotten_version_leads_to_a_relist_that_finds_the_deletes(
    control_plane: ControlPlane, client: KubeClient, api: Api, nodes: Nodes, namespace: str
) -> None:
    """The watch down, a node deleted, etcd compacted, the server restarted: 410, one relist, the node is gone (C22)."""
    kube = Troubled(client)
    async with following(cast("Kube", kube)) as (ingest, leader):
        await nodes.add(f"{namespace}-a")
        await nodes.add(f"{namespace}-b")
        await settled(client, ingest, leader)
        kube.refusals["watch", "nodes"] = ApiError(0, "Unreachable", "cut by the test")
        ingest.watching["nodes"].ask()
        await until(lambda: kube.requests["watch", "nodes"] > 1, "the watch is down")
        await nodes.remove(f"{namespace}-a")
        await nodes.label(f"{namespace}-b", {"zone": "b"})
        await control_plane.compact()
        await control_plane.restart(APISERVER)
        before, sessions = kube.requests["list", "nodes"], len(leader.published(SessionOpened))
        del kube.refusals["watch", "nodes"]
        await settled(client, ingest, leader)
        assert f"{namespace}-a" not in leader.folded()["nodes"]
        opened = [e for e in leader.published(SessionOpened)[sessions:] if e.kind == "nodes"]
        assert not any(event.rewound for event in leader.published(SessionOpened))
        assert opened
        assert kube.requests["list", "nodes"] - before < 20


async def test_t12_an_etcd_restored_from_a_backup_is_believed(
    control_plane: ControlPlane, client: KubeClient, api: Api, nodes: Nodes, namespace: str, tmp_path: Path
) -> None:
    """Its versions are behind the known ones: a rewound session; what was written since the backup is gone (T12)."""
    await nodes.add(f"{namespace}-a")
    await _offline(control_plane, lambda data: shutil.copytree(data, tmp_path / "backup"))
    async with following(client) as (ingest, leader):
        await nodes.cordon(f"{namespace}-a")
        await api.create("/api/v1/nodes", {"metadata": {"name": f"{namespace}-lost"}})
        for number in range(300):  # more than a starting server writes by itself
            await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {"n": str(number)}}})
        await settled(client, ingest, leader)
        await _offline(control_plane, partial(_put_back, tmp_path / "backup"))
        await settled(client, ingest, leader)
        assert [e.rewound for e in leader.published(SessionOpened) if e.kind == "nodes"][-1]
        assert f"{namespace}-lost" not in leader.folded()["nodes"]
    for component in ("kube-controller-manager", "kube-scheduler"):
        await control_plane.restart(component)  # they would wait for versions that are far away


async def _offline(control_plane: ControlPlane, act: Callable[[Path], object]) -> None:
    """Do something with etcd's data while nobody uses it."""
    for component in (APISERVER, "etcd"):
        control_plane.kill(component)
    await asyncio.to_thread(act, control_plane.directory / "etcd")
    for component in ("etcd", APISERVER):
        await control_plane.revive(component)


def _put_back(backup: Path, data: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(backup, data)


async def test_d12_kubevirt_may_come_later(control_plane: ControlPlane, client: KubeClient, api: Api) -> None:
    """Its CRD goes and comes back: said once, what is known stays, then a session follows it again (D12)."""
    crd = kinds.CRD.path(name="kubevirts.kubevirt.io")
    async with following(client) as (ingest, leader):
        await settled(client, ingest, leader)
        await api.delete(crd)
        await until(lambda: any(e.kind == "kubevirts" for e in leader.published(NotServed)), "not served")
        await api.until(crd, lambda found: found is None)
        sessions = [e for e in leader.published(SessionSynced) if e.kind == "kubevirts"]
        await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)
        await until(
            lambda: len([e for e in leader.published(SessionSynced) if e.kind == "kubevirts"]) > len(sessions), "served"
        )
        await settled(client, ingest, leader)
        said = [e for _, e in leader.events if isinstance(e, NotServed | SessionSynced) and e.kind == "kubevirts"]
        # Once each time: a server that takes a CRD up may serve it, and not yet, and serve it again.
        assert not [pair for pair in itertools.pairwise(said) if all(isinstance(one, NotServed) for one in pair)]


async def test_d12_a_pool_is_followed_in_the_version_that_is_served(
    control_plane: ControlPlane, client: KubeClient, api: Api, namespace: str
) -> None:
    """KubeVirt serves pools as v1alpha1, as v1beta1 or as both: they count, and go on to count when that changes."""
    crd = kinds.CRD.path(name=f"{kinds.VM_POOL.plural}.{kinds.VM_POOL.group}")
    [newest, older] = kinds.VM_POOL.versions
    marks = {"labels": {"a": "b"}, "annotations": {"cozystack.io/gpus": '[{"className":"l40s"}]'}}
    machine = {"spec": {"template": {"metadata": marks, "spec": {"domain": {"devices": {}}}}}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "virtualMachineTemplate": machine}
    pool = {"apiVersion": older.api_version, "kind": older.kind, "metadata": {"name": "p"}, "spec": spec}
    try:
        await _serve_pools(api, client, crd, older.version)
        async with following(client) as (ingest, leader):
            await settled(client, ingest, leader)
            await api.create(older.path(namespace), pool)
            await until(lambda: _replicas(leader, f"{namespace}/p") == 3, "the pool is known")
            assert not [one for one in leader.published(NotServed) if one.kind == newest.plural]

            await _serve_pools(api, client, crd, newest.version)
            await until(lambda: ingest.watching[newest.plural].source.resource == newest, "the other version")
            await api.patch(f"{newest.path(namespace)}/p", {"spec": {"replicas": 4}})
            await until(lambda: _replicas(leader, f"{namespace}/p") == 4, "its change is known")
            await settled(client, ingest, leader)
    finally:
        await api.delete(crd)
        await api.until(crd, lambda found: found is None)
        await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)


def _replicas(leader: Leader, key: str) -> int:
    view = leader.folded()[kinds.VM_POOL.plural].get(key)
    return view.replicas if isinstance(view, PoolView) else 0


async def _serve_pools(api: Api, client: KubeClient, crd: str, version: str) -> None:
    """Have pools served in one version alone, and wait until they are."""
    found = await api.get(crd)
    [stored] = [one for one in found["spec"]["versions"] if one["storage"]]
    [newest, *others] = kinds.VM_POOL.versions
    versions = [stored | {"served": newest.version == version}]
    versions += [stored | {"name": one.version, "served": one.version == version, "storage": False} for one in others]
    await api.patch(crd, {"spec": {"versions": versions}})
    for one in (newest, *others):
        await eventually(
            partial(_is_so, client, one, served=one.version == version), f"{one.api_version} is as was asked"
        )


async def _is_so(client: KubeClient, pools: kinds.Resource, *, served: bool) -> bool:
    try:
        await client.list_page(pools, limit=1)
    except ApiError as refused:
        # While the server takes the change up it says that it is not ready.
        return not served and refused.code == HTTPStatus.NOT_FOUND
    return served


async def test_t11_a_new_epoch_gets_progress_of_every_kind(client: KubeClient, api: Api, namespace: str) -> None:
    """Quiet kinds too answer a new leader within seconds, by bookmarks and without a new list (T11)."""
    async with following(client) as (ingest, leader):
        await settled(client, ingest, leader)
        sessions = len(leader.published(SessionOpened))
        for _ in range(3):
            tail = await moved(api, namespace, leader)
            await until(partial(_beyond, leader, tail), "progress of every kind")
        assert set(leader.book.state.sessions) == set(ingest.watching)
        assert len(leader.published(SessionOpened)) == sessions


async def moved(api: Api, namespace: str, leader: Leader) -> int:
    """Write something somewhere, so that etcd has moved, and begin an epoch; return the tail it saw."""
    await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {"moved": "etcd"}}})
    return await leader.begin()


def _beyond(leader: Leader, tail: int) -> bool:
    return all(session.progress > tail for session in leader.book.state.sessions.values())


async def test_t13_five_thousand_pods_are_listed_with_credit(client: KubeClient, api: Api, namespace: str) -> None:
    """A list of 5,000 launchers waits for the leader: never more chunks ahead of a request than credit allows (T13)."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await _side_by_side(16, [partial(api.create, pods, launcher(namespace, f"p{at:04}")) for at in range(5000)])
    async with following(client) as (ingest, leader):
        leader.covering.clear()
        await until(lambda: ingest.credit.taken >= IN_FLIGHT_MAX, "credit is used up")
        leader.covering.set()
        most = 0
        while not synced(leader, "pods"):
            most = max(most, ingest.credit.taken)
            await asyncio.sleep(0)
        chunks = [event for event in leader.published(Changes) if event.kind == "pods"]
        assert most <= IN_FLIGHT_MAX
        assert max(len(chunk.changes) for chunk in chunks) <= CHANGES_PER_CHUNK_MAX
        assert len([key for key in leader.folded()["pods"] if key.startswith(f"{namespace}/p")]) == 5000


async def _side_by_side(width: int, jobs: list[Callable[[], Awaitable[object]]]) -> None:
    async def work() -> None:
        while jobs:
            await jobs.pop()()

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(work())
