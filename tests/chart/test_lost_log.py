"""The log of an installation is lost, and taken over by the upgrades that the documentation tells."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from schemas.kinds import VMI
from tests.chart.kubelet import kubelet
from tests.chart.release import NAMESPACE, SECONDS, Release, left, nothing_is_left, tenant
from tests.cluster.api import Api
from tests.cluster.build import obtain
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.nodes import L40S, Nodes

NO_LICENCES: dict[str, object] = {"licences": {"enabled": False}}
_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, on which nothing of ours was ever seen: KubeVirt's kinds alone."""
    with ControlPlane(obtain(), KUBEVIRT_KINDS) as running:
        yield running


@pytest_asyncio.fixture
async def release(control_plane: ControlPlane, api: Api, helm_home: Path, tmp_path: Path) -> AsyncIterator[Release]:
    """A cluster without us, and a kubelet for our pods."""
    async with kubelet(control_plane, api, NAMESPACE, tmp_path / "pods") as pods:
        yield Release(control_plane, api, helm_home, pods)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_lost_log_is_taken_over_as_documented(
    release: Release, control_plane: ControlPlane, api: Api, nodes: Nodes, tmp_path: Path
) -> None:
    """T4: NATS lost all; the documented upgrades begin the next generation, what ran is booked, new VMs get places.

    Without licences, so that nobody of ours may read a Secret of others.
    """
    before = await left(api)
    await release.install(**NO_LICENCES)
    async with tenant(control_plane, api, nodes, tmp_path / "virt") as (one, _):
        await one.gpu_class("l40s", L40S)
        await one.node("n1", {L40S: 2})
        await one.vm("ran", [("l40s", 1)])
        assert await one.running("ran", SECONDS) == "n1"

        await release.pods.lose_volumes("nats")
        await release.upgrade(replicas=0, **NO_LICENCES)
        await release.upgrade(replicas=0, adopt={"mode": "takeover"}, **NO_LICENCES)
        await api.until(_JOBS, lambda found: found is not None and _complete(found), SECONDS)
        await release.upgrade(**NO_LICENCES)
        await release.reached()

        await one.vm("late", [("l40s", 1)])
        assert await one.running("late", SECONDS) == "n1"
        assert await one.bound("ran") == ["n1"]
        for vm in ("ran", "late"):
            await one.delete(vm)
            await api.until(VMI.path(one.tenant, vm), lambda found: found is None, SECONDS)
        await release.uninstall()
    await nothing_is_left(api, before)


def _complete(jobs: dict[str, Any]) -> bool:
    """Say whether the one Job that takes over is done."""
    taking = [one for one in jobs["items"] if "--fresh" not in one["spec"]["template"]["spec"]["containers"][0]["args"]]
    return bool(taking) and all((one["status"].get("succeeded") or 0) > 0 for one in taking)
