"""One control plane for all tests of a run; a namespace, a client and nodes of its own for each test."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
import pytest_asyncio

import deploy
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, WORKLOAD
from schemas.licences import COPY
from tests.cluster.api import Api, Refused
from tests.cluster.build import obtain
from tests.cluster.controlplane import ControlPlane
from tests.cluster.given import VARIABLE, Cluster, GivenCluster
from tests.cluster.nodes import Nodes

KUBEVIRT_KINDS = sorted((Path(deploy.__file__).parent / "world" / "crds").glob("*.yaml"))
OUR_KINDS = sorted((Path(deploy.__file__).parent / "crds").glob("*.yaml"))
_NUMBERS = itertools.count(1)
_RUNNING = pytest.StashKey[ControlPlane]()
_USES_CLUSTER = {"control_plane", "cluster"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a cluster, and keep those tests in one worker: a control plane takes 0.7 GB."""
    for item in items:
        if _USES_CLUSTER & set(getattr(item, "fixturenames", ())):
            item.add_marker("cluster")
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Heal the control plane before fixtures clean up: a test that failed half-way must not fail the rest."""
    if _RUNNING in item.config.stash and "control_plane" in getattr(item, "fixturenames", ()):
        item.config.stash[_RUNNING].heal()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own, with KubeVirt's kinds and ours: it reaches webhooks here, its parts can be killed."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # The first build takes minutes: its progress belongs onto the terminal, not into a captured buffer.
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        programs = obtain()
    with ControlPlane(programs, [*KUBEVIRT_KINDS, *OUR_KINDS]) as running:
        request.config.stash[_RUNNING] = running
        yield running
        del request.config.stash[_RUNNING]


@pytest.fixture(scope="session")
def given_cluster() -> Iterator[GivenCluster]:
    """The cluster whose kubeconfig the environment names."""
    with GivenCluster(Path(os.environ[VARIABLE])) as given:
        given.admin.install([*KUBEVIRT_KINDS, *OUR_KINDS])
        yield given


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The given cluster; ours when none is given, or when the test needs `control_plane` too."""
    ours = "control_plane" in request.fixturenames or not os.environ.get(VARIABLE)
    found: Cluster = request.getfixturevalue("control_plane" if ours else "given_cluster")
    return found


@pytest_asyncio.fixture
async def api(cluster: Cluster) -> AsyncIterator[Api]:
    """The test's own client, as administrator."""
    async with Api(cluster.kubeconfig()) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """A namespace of the test's own, in which pods can be created; it goes afterwards, with all it holds."""
    name = f"test-{os.getpid()}-{next(_NUMBERS)}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    await api.until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda account: account is not None)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest_asyncio.fixture
async def nodes(api: Api) -> AsyncIterator[Nodes]:
    """Nodes that are gone after the test."""
    added = Nodes(api)
    yield added
    await added.remove_all()


async def nothing_of_ours(api: Api) -> None:
    """Remove every object of ours that another test left, and wait until none stands: what it shows is another log's.

    Now and then the server ends a namespace and forgets a claim in it, which nobody collects any more; and what
    carries our finalizer waits for a program that runs no more.
    """
    for kind in (GPU_CLAIM, GPU_CLASS, GPU_BUDGET, WORKLOAD, COPY):
        listed = f"{kind.path()}?labelSelector={kind.labelled}" if kind.labelled else kind.path()
        for one in (await api.get(listed))["items"]:
            path = kind.path(one["metadata"].get("namespace", ""), one["metadata"]["name"])
            with suppress(Refused):
                await api.delete(path)
            with suppress(Refused):
                await api.patch(path, {"metadata": {"finalizers": None}})
        await api.until(listed, lambda found: found is not None and not found["items"], seconds=180.0)
