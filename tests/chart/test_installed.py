"""The chart on a real control plane, from nothing to nothing: installed, used, upgraded, rolled back, removed."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from deploy.chart_files import CHART
from schemas.admission import CONFIGURATION_NAME
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, VMI, WORKLOAD, WORKLOAD_MONITOR
from schemas.names import CLAIM_FINALIZER
from tests.chart.helm import HelmFailed, helm
from tests.chart.kubelet import Kubelet, kubelet
from tests.cluster.api import Api
from tests.cluster.build import obtain
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.tenant import Tenant, eventually

OURS = (GPU_CLASS, GPU_CLAIM, GPU_BUDGET, WORKLOAD, WORKLOAD_MONITOR)
NAMESPACE = "gpubinder-system"
TENANT = "tenant-a"
SECONDS = 180.0
NO_LICENCES: dict[str, object] = {"licences": {"enabled": False}}
_CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{CONFIGURATION_NAME}"
STAYS = {
    *(f"customresourcedefinitions /{kind.plural}.{kind.group}" for kind in OURS),
    f"namespaces /{NAMESPACE}",
    f"persistentvolumeclaims {NAMESPACE}/data-gpubinder-nats-0",
}
"""What a removal leaves, as the documentation says: the kinds with all that is of them, and the log."""


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, on which nothing of ours was ever seen: KubeVirt's kinds alone."""
    with ControlPlane(obtain(), KUBEVIRT_KINDS) as running:
        yield running


class Release:
    """One release of the chart: what an operator does with it."""

    def __init__(self, plane: ControlPlane, home: Path, pods: Kubelet) -> None:
        self._kubeconfig, self._home, self.pods = plane.kubeconfig(), home, pods

    def values(self, **changed: object) -> dict[str, Any]:
        """Return the values of the test, with what is changed: one of each, and no node that would take the pods."""
        return {
            "replicas": 1,
            "settings": {"kubevirtNamespace": "kubevirt"},
            # The scheduler must leave them to the kubelet of processes.
            "nodeSelector": {"runs": "as-processes"},
            "webhooks": {"service": {"port": self.pods.service_port}},
            "nats": {"server": {"servers": 1, "storage": {"limit": "900MB"}}},
            **changed,
        }

    async def helm(self, *arguments: str, values: dict[str, Any] | None = None) -> str:
        """Run helm against the cluster, beside the test."""
        call = partial(helm, *arguments, "--namespace", NAMESPACE, home=self._home, kubeconfig=self._kubeconfig)
        return await asyncio.to_thread(call, values=values)

    async def install(self, **changed: object) -> str:
        """Install it and wait until all of it works."""
        return await self.helm(
            *("install", "gpubinder", str(CHART), "--create-namespace", "--wait", "--timeout", "240s"),
            values=self.values(**changed),
        )

    async def upgrade(self, **changed: object) -> str:
        """Upgrade it to other values."""
        return await self.helm(
            *("upgrade", "gpubinder", str(CHART), "--wait", "--timeout", "240s", "--force-conflicts"),
            values=self.values(**changed),
        )

    async def rollback(self, revision: int) -> str:
        """Go back to a revision, which makes a new one."""
        return await self.helm(
            *("rollback", "gpubinder", str(revision), "--wait", "--timeout", "240s", "--force-conflicts")
        )

    async def uninstall(self) -> str:
        """Remove it, as an operator does."""
        return await self.helm("uninstall", "gpubinder", "--wait", "--timeout", "180s")


@pytest_asyncio.fixture
async def release(control_plane: ControlPlane, api: Api, helm_home: Path, tmp_path: Path) -> AsyncIterator[Release]:
    """A cluster without us, and a kubelet for our pods."""
    async with kubelet(control_plane, api, NAMESPACE, tmp_path / "pods") as pods:
        yield Release(control_plane, helm_home, pods)


async def reached(api: Api) -> None:
    """Have the API server find the webhooks' Service on loopback: there is no network of pods here."""
    service = f"/api/v1/namespaces/{NAMESPACE}/services/gpubinder-webhooks"
    await api.patch(service, {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None}})


@asynccontextmanager
async def tenant(control_plane: ControlPlane, api: Api, nodes: Nodes, directory: Path) -> AsyncIterator[Tenant]:
    """A tenant with KubeVirt; its VMs go at the end, while ours still works."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": TENANT}})
    await api.until(f"/api/v1/namespaces/{TENANT}/serviceaccounts/default", lambda found: found is not None)
    async with kubevirt_on(control_plane, api, TENANT, directory, chatter=False):
        yield Tenant(api, nodes, TENANT)
    await api.delete(f"/api/v1/namespaces/{TENANT}")
    await api.until(f"/api/v1/namespaces/{TENANT}", lambda found: found is None, SECONDS)


async def left(api: Api) -> list[str]:
    """Return every object of every served kind that has our name in its own, our label or our finalizer."""
    found = []
    groups = [group["preferredVersion"]["groupVersion"] for group in (await api.get("/apis"))["groups"]]
    for version in ("v1", *groups):
        root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        for kind in (await api.get(root))["resources"]:
            if "list" not in kind["verbs"] or kind["name"] == "events":
                continue
            for item in (await api.get(f"{root}/{kind['name']}"))["items"]:
                metadata = item["metadata"]
                told = f"{metadata['name']} {metadata.get('labels', {})} {metadata.get('finalizers', [])}"
                if "gpu" in told:
                    found.append(f"{kind['name']} {metadata.get('namespace', '')}/{metadata['name']}")
    return found


@pytest.mark.timeout(900)
async def test_a_gpu_vm_starts_with_the_rights_of_the_chart_alone(
    release: Release, control_plane: ControlPlane, api: Api, nodes: Nodes, tmp_path: Path
) -> None:
    """I1-I3, F1: from nothing to a VM with its GPU; it outlives upgrade, GPUs off, rollback; then nothing is left."""
    before = await left(api)
    assert "GPUs on" in await release.install()
    await reached(api)
    async with tenant(control_plane, api, nodes, tmp_path / "virt") as one:
        await one.gpu_class("l40s", L40S)
        await one.node("n1", {L40S: 2})
        await one.vm("vm", [("l40s", 1)])
        assert await one.running("vm", SECONDS) == "n1"
        assert await one.bound("vm") == ["n1"]
        assert "n1" in await release.pods.exec("binder", "gpubinder", "explain", f"{TENANT}/vm")
        assert json.loads(await release.pods.exec("binder", "gpubinder", "verify", "--json"))["anchored"]
        await _refused_and_upgraded(release, api, one)
        release.pods.nobody_was_denied()
        await _off_and_back(release, api, one)
        release.pods.nobody_was_denied(ended=False)
        await _removed(release, api, one, before)
    await _forget_kinds(api)
    await api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    await api.until(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, SECONDS)

    async def nothing() -> bool:
        return await left(api) == before

    await eventually(nothing, "nothing of ours is left", SECONDS)


async def _refused_and_upgraded(release: Release, api: Api, one: Tenant) -> None:
    """A removal while a VM runs is refused and changes nothing; an upgrade rolls, and the VM runs on."""
    with pytest.raises(HelmFailed):
        await release.uninstall()
    await release.rollback(1)
    await release.upgrade(logLevel="debug")
    await reached(api)
    assert await one.running("vm") == "n1"


async def _off_and_back(release: Release, api: Api, one: Tenant) -> None:
    """GPUs off: nobody is asked at admission, finalizers are served (F1); rolled back, VMs start with GPUs again."""
    await one.order("kept", "l40s")
    await one.held("kept", "Bound", seconds=SECONDS)
    await one.stop("vm")
    await release.upgrade(enabled=False)
    assert await api.find(_CONFIGURATION) is None
    await api.delete(GPU_CLAIM.path(TENANT, "kept"))
    await api.until(GPU_CLAIM.path(TENANT, "kept"), lambda found: found is None, SECONDS)
    await release.rollback(3)
    await reached(api)
    await one.start("vm")
    assert await one.running("vm", SECONDS) == "n1"


async def _removed(release: Release, api: Api, one: Tenant, before: list[str]) -> None:
    """Removed by force, a VM that waited is let go, an order waits for nobody; what stays is what is documented."""
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
        await api.until(VMI.path(TENANT, vm), lambda found: found is None, SECONDS)
    claim = await api.get(GPU_CLAIM.path(TENANT, "left"))
    assert CLAIM_FINALIZER not in claim["metadata"].get("finalizers", [])
    await api.delete(GPU_CLAIM.path(TENANT, "left"))
    await api.delete(GPU_CLASS.path(name="l40s"))
    assert set(await left(api)) - set(before) == STAYS


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_lost_log_is_taken_over_as_documented(
    release: Release, control_plane: ControlPlane, api: Api, nodes: Nodes, tmp_path: Path
) -> None:
    """T4: NATS lost all; the documented upgrades begin the next generation, what ran is booked, new VMs get places.

    Without licences, so that nobody of ours may read a Secret of others.
    """
    await release.install(**NO_LICENCES)
    await reached(api)
    async with tenant(control_plane, api, nodes, tmp_path / "virt") as one:
        await one.gpu_class("l40s", L40S)
        await one.node("n1", {L40S: 2})
        await one.vm("ran", [("l40s", 1)])
        assert await one.running("ran", SECONDS) == "n1"

        await release.pods.lose_volumes("nats")
        await release.upgrade(replicas=0, **NO_LICENCES)
        await release.upgrade(replicas=0, adopt={"mode": "takeover"}, **NO_LICENCES)
        await api.until(_ADOPTED, lambda found: found is not None and _complete(found), SECONDS)
        await release.upgrade(**NO_LICENCES)
        await reached(api)

        await one.vm("late", [("l40s", 1)])
        assert await one.running("late", SECONDS) == "n1"
        assert await one.bound("ran") == ["n1"]
        for vm in ("ran", "late"):
            await one.delete(vm)
            await api.until(VMI.path(TENANT, vm), lambda found: found is None, SECONDS)
        await release.uninstall()
    await _forget_kinds(api)
    await api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    await api.until(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, SECONDS)


_ADOPTED = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


def _complete(jobs: dict[str, Any]) -> bool:
    """Say whether the one Job that takes over is done."""
    taking = [one for one in jobs["items"] if "--fresh" not in one["spec"]["template"]["spec"]["containers"][0]["args"]]
    return bool(taking) and all((one["status"].get("succeeded") or 0) > 0 for one in taking)


async def _forget_kinds(api: Api) -> None:
    """Delete the kinds, as the documentation of a removal says."""
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for item in (await api.get(kinds))["items"]:
        if item["spec"]["group"] == GPU_CLASS.group:
            await api.delete(f"{kinds}/{item['metadata']['name']}")
