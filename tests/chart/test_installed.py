"""The chart as it comes, on a real control plane, from nothing to nothing: one installation that all tests here share.

Three servers of NATS, two replicas of each role, every right as the chart gives it. The tests go on one from another,
in the order in which they stand: installed and used, hurt, upgraded and rolled back, removed.
"""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from typing_extensions import override

from deploy.child import fetch
from deploy.role_names import Role
from deploy.world.clock import WallClock
from deploy.world.kubevirt import KubeVirt
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME
from schemas.kinds import GPU_CLAIM, GPU_CLASS, VMI
from schemas.kinds import NAMESPACE as NAMESPACES
from schemas.names import CLAIM_FINALIZER
from schemas.streams import STREAMS
from tests.chart import hurts, hurts_at_the_log
from tests.chart.helm import HelmFailed
from tests.chart.kubelet import kubelet
from tests.chart.pod_places import MONITOR
from tests.chart.release import NAMESPACE, SECONDS, STAYS, TENANT, Release, left, nothing_is_left, tenant
from tests.cluster.api import Api, Object, Refused
from tests.cluster.build import obtain
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.nodes import H100, L40S, Nodes
from tests.e2e.tenant import Tenant, eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1500)]


class Site(NamedTuple):
    """Where the tests are. `before`: what had our name before we came; node n1 has two units of the class l40s."""

    release: Release
    one: Tenant
    kubevirt: KubeVirt
    before: list[str]


class Ahead(WallClock):
    """The clock of a machine that is a quarter of an hour ahead: KubeVirt's, and the nodes' kubelets' (C63)."""

    @override
    def now(self) -> float:
        """Return what that machine takes for the present."""
        return super().now() + 900.0


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, on which nothing of ours was ever seen: KubeVirt's kinds alone."""
    with ControlPlane(obtain(), KUBEVIRT_KINDS) as running:
        yield running


@pytest.fixture(scope="module")
def helm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for helm's caches and the values it is given."""
    return tmp_path_factory.mktemp("helm")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    control_plane: ControlPlane, helm_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """The chart, installed as it comes."""
    place = tmp_path_factory.mktemp("installed")
    async with Api(control_plane.kubeconfig()) as api, kubelet(control_plane, api, NAMESPACE, place / "pods") as pods:
        before, nodes = await left(api), Nodes(api)
        release = Release(control_plane, api, helm_home, pods)
        assert "GPUs on" in await release.install()
        async with tenant(control_plane, api, nodes, place / "virt", Ahead()) as (one, kubevirt):
            await one.gpu_class("l40s", L40S)
            await one.node("n1", {L40S: 2})
            yield Site(release, one, kubevirt, before)


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def told(site: Site) -> AsyncIterator[None]:
    """Have a test that fails show how the pods' logs end, and leave to the next one no hurt of its own."""
    yield
    sys.stdout.write(site.release.pods.tails())
    site.kubevirt.kubelet.plugin = lambda _: None
    await hurts.as_it_was(site.release, site.one)


async def test_a_gpu_vm_starts_with_the_rights_of_the_chart_alone(site: Site) -> None:
    """I1, I3: from nothing to a VM with its GPU; the log answers, and holds what was anchored."""
    release, one = site.release, site.one

    await one.vm("vm", [("l40s", 1)])

    assert await one.running("vm", SECONDS) == "n1"
    assert await one.bound("vm") == ["n1"]
    assert "n1" in await release.pods.exec("binder", "gpubinder", "explain", f"{TENANT}/vm")
    assert json.loads(await release.pods.exec("binder", "gpubinder", "verify", "--json"))["anchored"]
    release.pods.nobody_was_denied()


async def test_the_log_has_three_copies_on_servers_that_write_before_they_answer(site: Site) -> None:
    """T8: each server fsyncs every write, and each stream has a copy on each."""
    pods = site.release.pods.of("nats")

    assert len(pods) == 3
    for pod in pods:
        page = json.loads(fetch(pod.ports[MONITOR], "/jsz?streams=true&config=true&accounts=true")[1])
        [account] = [one for one in page["account_details"] if one["name"] == "GPUBINDER"]
        assert page["config"]["sync_always"] is True
        copies = {one["name"]: one["config"]["num_replicas"] for one in account["stream_detail"]}
        assert copies == {spec.name: 3 for spec in STREAMS}


async def test_of_two_replicas_one_leads_and_one_may_go(site: Site) -> None:
    """I3: one of a role's pods leads; its budget lets one be evicted, and no second one until another is ready."""
    release = site.release
    for role in Role:
        await release.ready(role)
        if role is not Role.WEBHOOKS:
            assert await release.leader(role) in release.pods.of(role)
    budget = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/gpubinder-webhooks"
    await release.api.until(budget, lambda found: found is not None and _may_go(found))
    first, second = (pod.name for pod in release.pods.of("webhooks"))

    release.pods.held.add("webhooks")
    await _evict(release.api, first)
    with pytest.raises(Refused, match="disruption budget"):
        await _evict(release.api, second)
    release.pods.held.clear()

    await release.replaced("webhooks", first)
    assert second in {pod.name for pod in release.pods.of("webhooks")}


def _may_go(budget: Object) -> bool:
    return bool(budget["status"].get("disruptionsAllowed") == 1)


async def _evict(api: Api, pod: str) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    await api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})


async def test_c20_leaders_die_right_after_a_pin(site: Site) -> None:
    """C20: standbys that come to lead give the unit to nobody else; the claim is Bound, with one usage record."""
    await hurts.leaders_die_after_a_pin(site.release, site.one)


async def test_c24_without_webhooks_only_gpus_wait(site: Site) -> None:
    """C24, I2: labelled VMIs, launchers and orders are refused, all else goes on; then KubeVirt's next try starts."""
    await hurts.no_webhook_answers(site.release, site.one)


@pytest.mark.soak
async def test_c39_acknowledgements_are_lost(site: Site) -> None:
    """C39: lines that lose one answer in ten, and a change of leaders: each order has one place, the log is whole."""
    await hurts_at_the_log.acknowledgements_are_lost(site.release, site.one, 20)


async def test_c46_the_certificate_is_exchanged(site: Site) -> None:
    """C46: no start is refused that a retry does not cure; both replicas serve the new pair without a restart."""
    await hurts.certificate_is_exchanged(site.release, site.one)


async def test_c62_a_member_of_nats_hears_no_other(site: Site) -> None:
    """C62: no stale read decides: the node that refused the VM is skipped for its next VMI too, one leader leads."""
    await hurts_at_the_log.a_member_is_cut_off(site.release, site.one, site.kubevirt)


async def test_c63_clocks_differ(site: Site) -> None:
    """C63: stamps of others decide nothing: no lease is taken early, a silent one is, a skip outlives the leader."""
    await hurts_at_the_log.clocks_differ(site.release, site.one, site.kubevirt)


async def test_a_removal_is_refused_while_a_vm_runs(site: Site) -> None:
    """F1: `helm uninstall` says no, and the rollback that is documented has the release as it was."""
    release, one = site.release, site.one

    with pytest.raises(HelmFailed):
        await release.uninstall()
    await release.rollback(1)

    assert await one.running("vm") == "n1"


async def test_upgraded_with_a_vm_running(site: Site) -> None:
    """I3: pods roll, each a new one before an old one goes; VMs run on, and another one starts."""
    release, one = site.release, site.one
    old = {pod.name for role in Role for pod in release.pods.of(role)}

    await release.upgrade(logLevel="debug")
    await release.reached()

    async def rolled() -> bool:
        # Helm waits for the new pods alone: old ones drain for a while.
        return not old & {pod.name for role in Role for pod in release.pods.of(role)}

    await eventually(rolled, "the old pods are gone", SECONDS)
    await one.vm("between", [("l40s", 1)])
    assert await one.running("between", SECONDS) == "n1"

    assert await one.running("vm") == "n1"
    release.pods.nobody_was_denied(ended=False)
    await one.delete("between")
    await one.api.until(VMI.path(TENANT, "between"), lambda found: found is None, SECONDS)


async def test_gpus_off_serves_deletions_and_rolled_back_vms_start(site: Site) -> None:
    """I1, F1, F2: off, nobody is asked, records stay, what is deleted goes; rolled back VMs start again."""
    release, one = site.release, site.one
    other = Tenant(one.api, one.nodes, "tenant-b")
    await one.api.create(NAMESPACES.path(), {"metadata": {"name": other.tenant}})
    await other.gpu_class("spare", H100)
    await other.node("n3", {H100: 1})
    await one.order("kept", "l40s")
    await other.order("spare", "spare")
    await one.held("kept", "Bound", seconds=SECONDS)
    await other.held("spare", "Bound", seconds=SECONDS)
    await one.stop("vm")

    await release.upgrade(enabled=False)
    assert await one.api.find(CONFIGURATION.path(name=CONFIGURATION_NAME)) is None
    assert len(release.pods.of("nats")) == 3
    kept = await one.api.get(GPU_CLAIM.path(TENANT, "kept"))
    assert kept["metadata"]["uid"] in await hurts.recorded(one)
    gone = (GPU_CLAIM.path(TENANT, "kept"), NAMESPACES.path(name=other.tenant), GPU_CLASS.path(name="spare"))
    for path in gone:
        await one.api.delete(path)
    for path in gone:
        await one.api.until(path, lambda found: found is None, SECONDS)
    await release.rollback(2)
    await release.reached()

    await one.start("vm")
    assert await one.running("vm", SECONDS) == "n1"


async def test_removed_nothing_is_left(site: Site) -> None:
    """F1: by force a VM that waits is let go and an order waits for nobody; then all goes as is documented."""
    release, one, _, before = site
    await one.order("left", "l40s")
    await one.held("left", "Bound", seconds=SECONDS)
    await one.vm("waits", [("l40s", 2)])
    await one.waiting("waits", "NoRoom")

    await release.upgrade(uninstall={"force": True})
    await release.uninstall()

    assert len(await one.launchers("waits")) == 1
    assert await one.gated() == []
    for vm in ("vm", "waits"):
        await one.delete(vm)
        await one.api.until(VMI.path(TENANT, vm), lambda found: found is None, SECONDS)
    claim = await one.api.get(GPU_CLAIM.path(TENANT, "left"))
    assert CLAIM_FINALIZER not in claim["metadata"].get("finalizers", [])
    await one.api.delete(GPU_CLAIM.path(TENANT, "left"))
    await one.api.delete(GPU_CLASS.path(name="l40s"))

    async def stays() -> bool:
        # Claims of the VMs go with their owners, when the garbage collector comes to it.
        return set(await left(one.api)) - set(before) == STAYS

    await eventually(stays, "nothing but what is documented stays", SECONDS)
    await nothing_is_left(one.api, before)
