"""One release of the chart on a real control plane: what its operator does, a tenant beside it, what is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from deploy.chart_files import CHART
from deploy.world.clock import Clock
from deploy.world.kubevirt import KubeVirt
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, GPU_CLASS, LEASE, WORKLOAD, WORKLOAD_MONITOR
from schemas.names import LEASE_PREFIX
from tests.chart.helm import helm
from tests.chart.kubelet import Kubelet, Pod
from tests.chart.pod_places import NATS_PODS
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import Nodes
from tests.e2e.tenant import Tenant, eventually

NAMESPACE = "gpubinder-system"
TENANT = "tenant-a"
SECONDS = 180.0
KINDS = (GPU_CLASS, GPU_CLAIM, GPU_BUDGET, WORKLOAD, WORKLOAD_MONITOR)
STAYS = {
    *(f"customresourcedefinitions /{kind.plural}.{kind.group}" for kind in KINDS),
    f"namespaces /{NAMESPACE}",
    *(f"persistentvolumeclaims {NAMESPACE}/data-{pod}" for pod in NATS_PODS),
}
"""What a removal leaves, as the documentation says: the kinds with all that is of them, and the log."""


class Release:
    """One release of the chart: what an operator does with it."""

    def __init__(self, plane: ControlPlane, api: Api, home: Path, pods: Kubelet) -> None:
        self._kubeconfig, self._home, self.api, self.pods = plane.kubeconfig(), home, api, pods

    def values(self, **changed: object) -> dict[str, Any]:
        """Return the chart's own values but for what this machine is, with what is changed."""
        return {
            "settings": {"kubevirtNamespace": "kubevirt"},
            # The scheduler must leave them to the kubelet of processes.
            "nodeSelector": {"runs": "as-processes"},
            "webhooks": {"service": {"port": self.pods.service_port}},
            # A disk of a developer's.
            "nats": {"server": {"storage": {"limit": "900MB"}}},
            **changed,
        }

    async def helm(self, *arguments: str, values: dict[str, Any] | None = None) -> str:
        """Run helm against the cluster, beside the test."""
        call = partial(helm, *arguments, "--namespace", NAMESPACE, home=self._home, kubeconfig=self._kubeconfig)
        return await asyncio.to_thread(call, values=values)

    async def install(self, **changed: object) -> str:
        """Install it and wait until all of it works."""
        told = await self.helm(
            *("install", "gpubinder", str(CHART), "--create-namespace", "--wait", "--timeout", "540s"),
            values=self.values(**changed),
        )
        await self.reached()
        return told

    async def upgrade(self, **changed: object) -> str:
        """Upgrade it to other values."""
        return await self.helm(
            *("upgrade", "gpubinder", str(CHART), "--wait", "--timeout", "540s", *await self._forced()),
            values=self.values(**changed),
        )

    async def rollback(self, revision: int) -> str:
        """Go back to a revision, which makes a new one."""
        return await self.helm(
            *("rollback", "gpubinder", str(revision), "--wait", "--timeout", "540s", *await self._forced())
        )

    async def _forced(self) -> tuple[str, ...]:
        """Return how Helm is told to write over what `reached` wrote: from 4 on it applies on the server."""
        return ("--force-conflicts",) if int((await self.helm("version", "--short"))[1:].split(".")[0]) > 3 else ()

    async def uninstall(self) -> str:
        """Remove it, as an operator does."""
        return await self.helm("uninstall", "gpubinder", "--wait", "--timeout", "540s")

    async def reached(self) -> None:
        """Have the API server find the webhooks' Service on loopback: there is no network of pods here."""
        service = f"/api/v1/namespaces/{NAMESPACE}/services/gpubinder-webhooks"
        away = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None}}
        await self.api.patch(service, away)

    async def leader(self, role: str) -> Pod:
        """Wait until a running pod holds a role's lease; return it."""

        async def holder() -> Pod | None:
            lease = await self.api.find(LEASE.path(NAMESPACE, f"{LEASE_PREFIX}{role}"))
            parts = ((lease or {}).get("spec", {}).get("holderIdentity") or "").split("-")
            running = (pod for pod in self.pods.of(role) if pod.child.running)
            return next((pod for pod in running if str(pod.child.pid) in parts), None)

        found = await eventually(holder, f"a pod leads {role}", SECONDS)
        assert found is not None
        return found

    async def ready(self, component: str, count: int = 2) -> None:
        """Wait until so many pods of a component are ready, and no other is there."""

        async def all_ready() -> bool:
            return [pod.ready for pod in self.pods.of(component)] == [True] * count

        await eventually(all_ready, f"{count} pods of {component} are ready", SECONDS)

    async def replaced(self, component: str, gone: str, count: int = 2) -> None:
        """Wait until a pod of a component is gone, and so many others are ready."""

        async def others_are_ready() -> bool:
            pods = self.pods.of(component)
            return gone not in {pod.name for pod in pods} and [pod.ready for pod in pods] == [True] * count

        await eventually(others_are_ready, f"{gone} is replaced", SECONDS)


@asynccontextmanager
async def tenant(
    control_plane: ControlPlane, api: Api, nodes: Nodes, directory: Path, clock: Clock | None = None
) -> AsyncIterator[tuple[Tenant, KubeVirt]]:
    """A tenant with KubeVirt, whose clock may be another; its VMs go at the end, while ours still works."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": TENANT}})
    await api.until(f"/api/v1/namespaces/{TENANT}/serviceaccounts/default", lambda found: found is not None)
    async with kubevirt_on(control_plane, api, TENANT, directory, chatter=False, clock=clock) as kubevirt:
        yield Tenant(api, nodes, TENANT), kubevirt
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


async def nothing_is_left(api: Api, before: list[str]) -> None:
    """Delete the kinds and the namespace, as the documentation of a removal says; fail where anything stays."""
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for item in (await api.get(kinds))["items"]:
        if item["spec"]["group"] == GPU_CLASS.group:
            await api.delete(f"{kinds}/{item['metadata']['name']}")
    await api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    await api.until(f"/api/v1/namespaces/{NAMESPACE}", lambda found: found is None, SECONDS)

    async def nothing() -> bool:
        return await left(api) == before

    await eventually(nothing, "nothing of ours is left", SECONDS)
