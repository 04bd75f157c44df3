"""What a tenant and the platform's operator do and see: VMs, classes, nodes; claims, launchers, events."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from schemas.kinds import GPU_CLAIM, GPU_CLASS, NAMESPACE, POD, VM, VMI
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE, VGPU_LABEL
from tests.cluster.api import Api, Object
from tests.cluster.nodes import Nodes
from tests.e2e.witness import gates

Found = TypeVar("Found")
SECONDS = 120.0
"""How long something may take before a test gives up; nothing is decided by it."""


def vm_body(
    name: str, entries: Sequence[tuple[str, int]], *, volumes: Sequence[str] = (), text: str = "", **spec: object
) -> Object:
    """Return a running VM that asks for `entries` (class, count), or for what `text` says; `volumes`: PVC names."""
    gpus = named(entries, ())
    domain: Object = {"memory": {"guest": "1Gi"}, "devices": {}}
    template: Object = {"domain": domain, **spec}
    if volumes:
        template["volumes"] = [{"name": v, "persistentVolumeClaim": {"claimName": v}} for v in volumes]
        domain["devices"]["disks"] = [{"name": v, "disk": {"bus": "virtio"}} for v in volumes]
    marks = {"labels": {REFERENCE_LABEL: REFERENCE_VALUE}, "annotations": {GPUS_ANNOTATION: text or gpus}}
    body = {"runStrategy": "Always", "template": {"metadata": marks, "spec": template}}
    return {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": {"name": name}, "spec": body}


def named(entries: Sequence[tuple[str, int]], held: Sequence[str]) -> str:
    """Return the annotation that asks for units of classes, and behind them for held claims by name."""
    classes = [{"className": gpu_class, "count": count} for gpu_class, count in entries]
    return json.dumps([*classes, *({"claimName": claim} for claim in held)])


class Tenant:
    """One namespace `tenant`, and the nodes and classes of the cluster. `offers`: units each node offers."""

    def __init__(self, api: Api, nodes: Nodes, tenant: str) -> None:
        self.api, self.nodes, self.tenant = api, nodes, tenant
        self.offers: dict[str, dict[str, int]] = {}
        self._classes: list[str] = []

    async def node(self, name: str, units: Mapping[str, int], **options: object) -> None:
        """Add a node that offers GPU units, and other resources given as `resources`."""
        resources: dict[str, str] = {key: str(value) for key, value in units.items()}
        extra = options.pop("resources", {})
        assert isinstance(extra, Mapping)
        self.offers[name] = dict(units)
        await self.nodes.add(name, {**resources, **extra}, **options)  # type: ignore[arg-type] # labels, taints

    async def gpu_class(self, name: str, resource: str, mode: str = "Passthrough", **spec: object) -> None:
        """Create a class; it is removed after the test."""
        body = {"metadata": {"name": name}, "spec": {"resourceName": resource, "mode": mode, **spec}}
        await self.api.create(GPU_CLASS.path(), {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, **body})
        self._classes.append(name)

    async def entitle(self) -> None:
        """Let the tenant have vGPUs (A5)."""
        await self.api.patch(NAMESPACE.path(name=self.tenant), {"metadata": {"labels": {VGPU_LABEL: "true"}}})

    async def vm(
        self,
        name: str,
        entries: Sequence[tuple[str, int]],
        *,
        held: Sequence[str] = (),
        volumes: Sequence[str] = (),
        **spec: object,
    ) -> None:
        """Create a running VM. `held`: the held claims that it names, behind its class entries."""
        body = vm_body(name, (), volumes=volumes, text=named(entries, held), **spec)
        await self.api.create(VM.path(self.tenant), body)

    async def order(self, name: str, gpu_class: str, count: int = 1, **options: str) -> None:
        """Order units of a class: create a held claim. `options`: of the request."""
        spec = {"className": gpu_class, "count": count}
        body = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind, "metadata": {"name": name}, "spec": spec}
        await self.api.create(GPU_CLAIM.path(self.tenant), body, **options)

    async def held(
        self,
        name: str,
        phase: str,
        reason: str = "",
        vm: str | None = None,
        *,
        node: str = "",
        seconds: float = SECONDS,
    ) -> Object:
        """Wait until a held claim shows this phase, and reason, holder, node if given; return its status."""

        def shows(claim: Object | None) -> bool:
            status = (claim or {}).get("status") or {}
            reasons = [condition["reason"] for condition in status.get("conditions") or ()]
            holder = (status.get("attachedTo") or {}).get("name", "")
            known = status.get("phase") == phase and reason in {"", *reasons}
            return known and (vm is None or vm == holder) and node in {"", status.get("nodeName")}

        claim = await self.api.until(GPU_CLAIM.path(self.tenant, name), shows, seconds)
        assert claim is not None
        status: Object = claim["status"]
        return status

    async def stop(self, name: str) -> None:
        """Stop a VM."""
        await self.api.patch(VM.path(self.tenant, name), {"spec": {"runStrategy": "Halted"}})

    async def start(self, name: str) -> None:
        """Start a stopped VM."""
        await self.api.patch(VM.path(self.tenant, name), {"spec": {"runStrategy": "Always"}})

    async def delete(self, name: str) -> None:
        """Delete a VM and wait until it is gone."""
        await self.api.delete(VM.path(self.tenant, name))
        await self.api.until(VM.path(self.tenant, name), lambda vm: vm is None, SECONDS)

    async def vmi(self, name: str) -> Object | None:
        """Return a VM's VMI."""
        return await self.api.find(VMI.path(self.tenant, name))

    async def launchers(self, vm: str = "") -> list[Object]:
        """Return the launcher pods, of one VM or of all."""
        listed = await self.api.get(POD.path(self.tenant))
        return [
            pod
            for pod in listed["items"]
            if not vm or any(owner["name"] == vm for owner in pod["metadata"].get("ownerReferences") or ())
        ]

    async def claims(self, vm: str = "") -> list[Object]:
        """Return the claims, of one VM or of all, by name."""
        listed = await self.api.get(GPU_CLAIM.path(self.tenant))
        owners = [[o["name"] for o in claim["metadata"].get("ownerReferences") or ()] for claim in listed["items"]]
        mine = [claim for claim, names in zip(listed["items"], owners, strict=True) if not vm or vm in names]
        return sorted(mine, key=lambda claim: str(claim["metadata"]["name"]))

    async def running(self, vm: str, seconds: float = SECONDS) -> str:
        """Wait until the VM's guest runs; return its node."""

        def runs(vmi: Object | None) -> bool:
            return vmi is not None and (vmi.get("status") or {}).get("phase") == "Running"

        vmi = await self.api.until(VMI.path(self.tenant, vm), runs, seconds)
        assert vmi is not None
        return str(vmi["status"]["nodeName"])

    async def pinned(self, vm: str, seconds: float = SECONDS) -> None:
        """Wait until a launcher of the VM has been let go."""

        async def let_go() -> bool:
            return any(not gates(pod) for pod in await self.launchers(vm))

        await eventually(let_go, f"the launcher of {vm} is let go", seconds)

    async def bound(self, vm: str) -> list[str]:
        """Wait until all claims of a VM, at least one, are Bound; return their nodes."""

        async def nodes() -> list[str]:
            shown = [claim.get("status") or {} for claim in await self.claims(vm)]
            return [one["nodeName"] for one in shown] if all(one.get("phase") == "Bound" for one in shown) else []

        return await eventually(nodes, f"the claims of {vm} are Bound")

    async def waiting(self, vm: str, reason: str) -> str:
        """Wait until the VM's claims say this reason; return the message."""

        async def message() -> str:
            for claim in await self.claims(vm):
                for condition in (claim.get("status") or {}).get("conditions") or ():
                    if condition["reason"] == reason:
                        return str(condition["message"])
            return ""

        return await eventually(message, f"{vm} waits for {reason}")

    async def gated(self, vm: str = "") -> list[Object]:
        """Return the launchers that stand behind a gate."""
        return [pod for pod in await self.launchers(vm) if gates(pod)]

    async def events(self, reason: str = "") -> list[Object]:
        """Return the tenant's Kubernetes events that we reported."""
        listed = await self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.tenant}/events")
        return [
            event
            for event in listed["items"]
            if event.get("reportingController") == "gpubinder" and (not reason or event["reason"] == reason)
        ]

    async def warned(self, count: int) -> None:
        """Wait for this many of our events; more are an error. The event is the last that is written of a decision."""

        async def enough() -> bool:
            return len(await self.events()) >= count

        await eventually(enough, f"{count} events")
        assert len(await self.events()) == count

    async def leave(self) -> None:
        """Remove what the test made, and wait until it is gone."""
        for vm in (await self.api.get(VM.path(self.tenant)))["items"]:
            await self.api.delete(VM.path(self.tenant, vm["metadata"]["name"]))
        await self._empty(VM.path(self.tenant))
        # The garbage collector takes minutes to find its feet after an API server was killed.
        await self.api.delete(GPU_CLAIM.path(self.tenant))
        await self._empty(GPU_CLAIM.path(self.tenant))
        for name in self._classes:
            if await self.api.find(GPU_CLASS.path(name=name)) is not None:
                await self.api.delete(GPU_CLASS.path(name=name))
        for name in self._classes:
            await self.api.until(GPU_CLASS.path(name=name), lambda found: found is None, SECONDS)

    async def _empty(self, path: str) -> None:
        await self.api.until(path, lambda found: found is not None and not found["items"], SECONDS)


async def eventually(look: Callable[[], Awaitable[Found]], what: str, seconds: float = SECONDS) -> Found:
    """Look until there is something true to return. Raises TimeoutError that says what never came."""
    try:
        async with asyncio.timeout(seconds):
            while not (found := await look()):
                await asyncio.sleep(0.05)
            return found
    except TimeoutError:
        raise TimeoutError(f"never in {seconds:g} s: {what}") from None
