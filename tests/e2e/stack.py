"""One whole set-up for a test: NATS, our roles in processes, KubeVirt emulated, a tenant, and the laws watched."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from binder.anchor import Anchor
from binder.audit import Auditor, Report
from binder.jetstream import Access, Connection, connect
from binder.kube_client import KubeClient
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.adopt import adopt_fresh
from deploy.local import LocalNats
from schemas.admission import CONFIGURATION_NAME
from schemas.names import GPUS_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
from tests.cluster.api import Api, Object
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import Nodes
from tests.cluster.users import GPUBINDER
from tests.e2e.process import ALL, Processes
from tests.e2e.witness import Witness, gates
from webhooks.configuration import webhook_configuration

VMS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances"
CLAIMS = "/apis/cozystack.io/v1alpha1/namespaces/{}/gpuclaims"
CLASSES = "/apis/cozystack.io/v1alpha1/gpuclasses"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
SECONDS = 60.0


class Stack:
    """What a test says and asks. `tenant`: the namespace of the VMs; `system`: ours."""

    def __init__(self, plane: ControlPlane, api: Api, nodes: Nodes, nats: LocalNats, tenant: str, system: str) -> None:
        self.plane, self.api, self.nodes, self.nats = plane, api, nodes, nats
        self.tenant, self.system = tenant, system
        self.offers: dict[str, dict[str, int]] = {}
        self.witness = Witness(api, tenant, self.offers)
        self.processes: Processes
        self.connection: Connection
        self.journal: JetStreamJournal
        self.kube: KubeClient
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
        await self.api.create(CLASSES, {"apiVersion": "cozystack.io/v1alpha1", "kind": "GPUClass", **body})
        self._classes.append(name)

    async def vm(
        self, name: str, entries: Sequence[tuple[str, int]], *, volumes: Sequence[str] = (), **spec: object
    ) -> None:
        """Create a running VM that asks for `entries` (class, count); `volumes` are PVC names."""
        gpus = json.dumps([{"className": gpu_class, "count": count} for gpu_class, count in entries])
        domain: Object = {"memory": {"guest": "1Gi"}, "devices": {}}
        template: Object = {"domain": domain, **spec}
        if volumes:
            template["volumes"] = [{"name": v, "persistentVolumeClaim": {"claimName": v}} for v in volumes]
            domain["devices"]["disks"] = [{"name": v, "disk": {"bus": "virtio"}} for v in volumes]
        marks = {"labels": {REFERENCE_LABEL: REFERENCE_VALUE}, "annotations": {GPUS_ANNOTATION: gpus}}
        body = {"runStrategy": "Always", "template": {"metadata": marks, "spec": template}}
        vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": body}
        await self.api.create(VMS.format(self.tenant), vm)

    async def stop(self, name: str) -> None:
        """Stop a VM."""
        await self.api.patch(f"{VMS.format(self.tenant)}/{name}", {"spec": {"runStrategy": "Halted"}})

    async def launchers(self, vm: str = "") -> list[Object]:
        """Return the launcher pods, of one VM or of all."""
        listed = await self.api.get(f"/api/v1/namespaces/{self.tenant}/pods")
        return [
            pod
            for pod in listed["items"]
            if not vm or any(owner["name"] == vm for owner in pod["metadata"].get("ownerReferences") or ())
        ]

    async def claims(self, vm: str = "") -> list[Object]:
        """Return the claims, of one VM or of all, by name."""
        listed = await self.api.get(CLAIMS.format(self.tenant))
        mine = [c for c in listed["items"] if not vm or c["metadata"]["ownerReferences"][0]["name"] == vm]
        return sorted(mine, key=lambda claim: str(claim["metadata"]["name"]))

    async def running(self, vm: str, seconds: float = SECONDS) -> str:
        """Wait until the VM's guest runs; return its node."""
        path = f"{VMIS.format(self.tenant)}/{vm}"
        try:
            vmi = await self.api.until(path, lambda v: bool(v) and v["status"].get("phase") == "Running", seconds)  # type: ignore[index]
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.processes.tails()}") from None
        assert vmi is not None
        return str(vmi["status"]["nodeName"])

    async def waiting(self, vm: str, reason: str, seconds: float = SECONDS) -> str:
        """Wait until the VM's claims say this reason; return the message."""
        async with asyncio.timeout(seconds):
            while True:
                for claim in await self.claims(vm):
                    for condition in claim.get("status", {}).get("conditions") or ():
                        if condition["reason"] == reason:
                            return str(condition["message"])
                await asyncio.sleep(0.05)

    async def gated(self) -> int:
        """Return how many launchers stand behind a gate."""
        return sum(bool(gates(pod)) for pod in await self.launchers())

    async def events(self, reason: str = "") -> list[Object]:
        """Return the tenant's Kubernetes events that we reported."""
        listed = await self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.tenant}/events")
        return [
            event
            for event in listed["items"]
            if event.get("reportingController") == "gpubinder" and (not reason or event["reason"] == reason)
        ]

    async def verified(self) -> Report:
        """Audit the whole log against its anchor; whole or the test fails."""
        report = await Auditor(self.journal).verify(await Anchor(self.kube, self.system).read())
        assert report.whole, report
        return report

    async def leave(self) -> None:
        """Remove what the test made, and wait until it is gone."""
        for vm in (await self.api.get(VMS.format(self.tenant)))["items"]:
            await self.api.delete(f"{VMS.format(self.tenant)}/{vm['metadata']['name']}")
        await self._until_empty(VMS.format(self.tenant), CLAIMS.format(self.tenant))
        for name in self._classes:
            await self.api.delete(f"{CLASSES}/{name}")

    async def _until_empty(self, *paths: str) -> None:
        async with asyncio.timeout(SECONDS):
            for path in paths:
                while (await self.api.get(path))["items"]:
                    await asyncio.sleep(0.05)


@asynccontextmanager
async def stack(
    plane: ControlPlane, api: Api, nodes: Nodes, nats: LocalNats, tenant: str, directory: Path
) -> AsyncIterator[Stack]:
    """Set everything up: a log adopted fresh, webhooks registered, KubeVirt running; no role runs yet."""
    system = f"{tenant}-system"
    await api.create("/api/v1/namespaces", {"metadata": {"name": system}})
    here = Stack(plane, api, nodes, nats, tenant, system)
    certificate, key = plane.authority.issue_files(directory / "tls", "localhost")
    kubeconfig = plane.kubeconfig(GPUBINDER)
    here.processes = Processes(
        directory, nats=nats.url, kubeconfig=kubeconfig, namespace=system, certificate=certificate, key=key
    )
    here.connection = await connect(Access((nats.url,)), lambda _why: None)
    here.journal = JetStreamJournal(here.connection)
    here.kube = await KubeClient.connect(kubeconfig=str(kubeconfig))
    await create_streams(here.journal, replicas=1)
    await adopt_fresh(here.kube, here.journal, system, "test")
    hooks = webhook_configuration(f"https://127.0.0.1:{here.processes.port}", plane.authority.pem)
    await api.create(CONFIGURATIONS, hooks)
    try:
        async with kubevirt_on(plane, api, tenant, directory, chatter=False):
            watching = asyncio.create_task(here.witness.run())
            yield here
            # The VMs go through our roles: they must still run here.
            await here.leave()
            watching.cancel()
    finally:
        await here.processes.stop()
        await api.delete(f"{CONFIGURATIONS}/{CONFIGURATION_NAME}")
        await here.kube.close()
        await here.connection.close()
        await api.delete(f"/api/v1/namespaces/{system}")
    assert not here.witness.broken, here.witness.broken


async def all_roles(here: Stack) -> None:
    """Start one process with every role and wait until it answers."""
    here.processes.start("gpubinder", ALL)
    await ready(here)


async def ready(here: Stack) -> None:
    """Wait until the webhooks serve and a leader's epoch answers: a dry run of a VMI is the proof."""
    probe = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "probe",
            "labels": {REFERENCE_LABEL: REFERENCE_VALUE},
            "annotations": {GPUS_ANNOTATION: '[{"className":"no-such-class"}]'},
        },
        "spec": {"domain": {"devices": {}}},
    }
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await here.api.create(VMIS.format(here.tenant), probe, dryRun="All")
            except Exception as error:  # noqa: BLE001 - whatever it is that is not ready yet
                if "no-such-class" in str(error) and "does not exist" in str(error):
                    return
                last = str(error)
            for child in here.processes.children.values():
                if not child.running:
                    raise child.failure(f"ended before it was ready ({last})")
            await asyncio.sleep(0.1)
