"""One whole set-up for a test: NATS, our roles in processes, KubeVirt emulated, a tenant, and the laws watched."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from binder.access import Access
from binder.anchor import Anchor
from binder.audit import Auditor, Report
from binder.follower import Follower
from binder.jetstream import Connection, connect
from binder.kube_client import KubeClient
from binder.state import State
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.adopt import adopt_fresh
from deploy.local import LocalNats, LocalNatsCluster
from schemas.admission import CONFIGURATION_NAME, START_WEBHOOK, VALIDATING_CONFIGURATION
from schemas.decisions import SetBooked, SetClosed, SetOpened, SetPlaced, SetReleased, SetWaits
from schemas.frames import Frame, decode_record
from schemas.kinds import LEASE, VMI
from schemas.names import LEASE_PREFIX, SETTING_POLICY, SETTINGS_CONFIGMAP
from schemas.objects import NodeView
from schemas.streams import DECISIONS
from tests.binder.waiting import patient
from tests.cluster.api import Api, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import nothing_of_ours
from tests.cluster.kubevirt import kubevirt_on
from tests.cluster.nodes import Nodes
from tests.cluster.users import GPUBINDER
from tests.e2e.process import ALL, Processes
from tests.e2e.tenant import SECONDS, Tenant, eventually, vm_body
from tests.e2e.witness import Witness, gates, pinned_node
from webhooks.configuration import webhook_configuration
from webhooks.registration import validating
from webhooks.starts import start_webhook
from webhooks.validating import validating_configuration

VMS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
CONFLICT, INVALID = 409, 422
Made = TypeVar("Made", SetBooked, SetOpened, SetPlaced, SetReleased, SetWaits, SetClosed)


class Stack(Tenant):
    """What a test says and asks. `system`: our namespace; `journal`, `kube`: the test's own doors to NATS and API."""

    def __init__(
        self, plane: ControlPlane, api: Api, nodes: Nodes, nats: LocalNats | LocalNatsCluster, tenant: str, system: str
    ) -> None:
        super().__init__(api, nodes, tenant)
        self.plane, self.nats, self.system = plane, nats, system
        self.witness = Witness(api, tenant, self.offers)
        self.processes: Processes
        self.connection: Connection
        self.journal: JetStreamJournal
        self.kube: KubeClient

    async def apart(self, *more: str) -> None:
        """Start a process for each role, named as it, and wait until they answer. `more`: spares, as `binder-2`."""
        for name in (*ALL, *more):
            self.processes.start(name, [name.partition("-")[0]])
        await self.ready()

    async def ready(self) -> None:
        """Wait until the webhooks serve and a binder may place: a dry run of a VMI is the proof."""
        vm = vm_body("probe", [("no-such-class", 1)])
        template = vm["spec"]["template"]
        probe = {"apiVersion": VMI.api_version, "kind": VMI.kind, **template}
        probe["metadata"] = {"name": "probe", **template["metadata"]}

        async def answered() -> bool:
            try:
                await self.api.create(VMI.path(self.tenant), probe, dryRun="All")
            except Exception as error:  # noqa: BLE001 - whatever it is that is not ready yet
                if "no-such-class" in str(error) and "does not exist" in str(error):
                    return True
            for child in self.processes.children.values():
                if not child.running:
                    raise child.failure("ended before it was ready")
            return False

        await eventually(answered, "our roles are ready")

    @override
    async def order(self, name: str, gpu_class: str, count: int = 1, **options: str) -> None:
        """Order units, again while they are refused: what was written a moment ago may not have been seen yet (O1)."""

        async def taken() -> bool:
            try:
                await super(Stack, self).order(name, gpu_class, count, **options)
            except Refused as refused:
                if refused.code in {CONFLICT, INVALID}:
                    raise
                return False
            return True

        await eventually(taken, f"the order {name} is taken")

    async def unasked(self) -> None:
        """Have nobody ask about writes and orders any more: what can't be met now is taken, and has to wait."""
        path = VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME)
        stands = await self.api.get(path)
        await self.api.patch(path, {"webhooks": [one for one in stands["webhooks"] if one["name"] == START_WEBHOOK]})

        await self.order("probe", "no-such-class", dryRun="All")

    async def nodes_known(self) -> None:
        """Wait until the log tells what every node offers: who asks before is told so, in an event that counts."""
        units_of = self.offers.items()

        async def known() -> bool:
            views = (await self.told()).objects["nodes"]
            # A new node has a taint until it is ready.
            ready = {name: one for name, one in views.items() if isinstance(one, NodeView) and not one.taints}
            return all(name in ready and set(units) <= set(ready[name].allocatable) for name, units in units_of)

        await eventually(known, f"the log tells of the nodes {', '.join(self.offers)}")

    async def policy(self, start_policy: str) -> None:
        """Set the start policy, and wait until the log knows it: VMIs admitted from then on are marked with it."""
        path = f"/api/v1/namespaces/{self.system}/configmaps/{SETTINGS_CONFIGMAP}"
        data = {"data": {SETTING_POLICY: start_policy}}
        if await self.api.find(path) is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS_CONFIGMAP}, **data}
            await self.api.create(path.rpartition("/")[0], body)
        else:
            await self.api.patch(path, data)

        async def known() -> bool:
            view = (await self.told()).settings_view()
            return view is not None and view.data.get(SETTING_POLICY) == start_policy

        await eventually(known, f"the policy is {start_policy}")

    async def logged(self, kind: type[Made], vm: str, so: Callable[[Made], bool] = lambda _: True) -> Made:
        """Wait until the log says this of a VM's set; return the first such decision."""
        await self._connected()
        async with asyncio.timeout(SECONDS):
            async for run in self.journal.read(DECISIONS, 1):
                for message in run:
                    record = decode_record(message.body)
                    for entry in record.entries if isinstance(record, Frame) else ():
                        for made in entry.decisions:
                            if isinstance(made, kind) and made.vmi.name == vm and so(made):
                                return made
        raise AssertionError("the log ended")

    async def holder(self, role: str) -> str:
        """Return the name of the living process that holds a role's lease, '' where none of ours does."""
        lease = await self.api.find(LEASE.path(self.system, f"{LEASE_PREFIX}{role}"))
        identity = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        running = {str(child.pid): name for name, child in self.processes.children.items() if child.running}
        return next((running[part] for part in identity.split("-") if part in running), "")

    async def told(self) -> State:
        """Return the state that the log tells now; while NATS elects a leader it is asked again."""
        await self._connected()
        return await patient(self._told)

    async def _told(self) -> State:
        follower = Follower(self.journal)
        try:
            return await follower.start()
        finally:
            await follower.close()

    async def books(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return who has units where: by the log, and by the pods (pod uid -> node)."""
        booked = {one.pod_uid: one.node for one in (await self.told()).sets.values() if one.node}
        pods = [pod for pod in await self.launchers() if not gates(pod)]
        return booked, {pod["metadata"]["uid"]: pinned_node(pod) for pod in pods}

    async def quiet(self) -> dict[str, str]:
        """Wait until log and pods agree on who has units where; return it."""

        async def agreed() -> list[dict[str, str]]:
            booked, pinned = await self.books()
            return [booked] if booked == pinned else []

        return (await eventually(agreed, "the books equal the pods"))[0]

    async def _connected(self) -> None:
        """Wait until our own connection is back after an outage."""

        async def connected() -> bool:
            return self.connection.connected

        await eventually(connected, "NATS answers the test")

    async def verified(self) -> Report:
        """Audit the whole log against its anchor; whole or the test fails."""
        await self._connected()
        report = await Auditor(self.journal).verify(await Anchor(self.kube, self.system).read())
        assert report.whole, report
        assert report.anchored
        return report


async def all_roles(here: Stack) -> None:
    """Start one process with every role and wait until it answers."""
    here.processes.start("gpubinder", ALL)
    await here.ready()


@asynccontextmanager
async def stack(
    plane: ControlPlane,
    api: Api,
    nodes: Nodes,
    nats: LocalNats | LocalNatsCluster,
    tenant: str,
    directory: Path,
    *,
    bare: bool = False,
) -> AsyncIterator[Stack]:
    """Set everything up: a log adopted fresh, webhooks registered, KubeVirt running; no role runs yet.

    `bare`: without KubeVirt and witness, which cost more than what a benchmark measures.
    """
    here = Stack(plane, api, nodes, nats, tenant, f"{tenant}-system")
    await api.create("/api/v1/namespaces", {"metadata": {"name": here.system}})
    urls = tuple(nats.urls) if isinstance(nats, LocalNatsCluster) else (nats.url,)
    certificate, key = plane.authority.issue_files(directory / "tls", "localhost")
    kubeconfig = plane.kubeconfig(GPUBINDER)
    here.processes = Processes(
        directory, nats=",".join(urls), kubeconfig=kubeconfig, namespace=here.system, certificate=certificate, key=key
    )
    here.connection = await connect(Access(urls), lambda _why: None)
    here.journal = JetStreamJournal(here.connection)
    here.kube = await KubeClient.connect(kubeconfig=str(kubeconfig))
    await create_streams(here.journal, replicas=len(urls))
    await nothing_of_ours(api)
    await adopt_fresh(here.kube, here.journal, here.system, "test")
    await _register(api, f"https://127.0.0.1:{here.processes.port}", plane.authority.pem, bare=bare)
    try:
        if bare:
            yield here
            return
        async with kubevirt_on(plane, api, tenant, directory, chatter=False), _watched(here.witness):
            try:
                yield here
            except BaseException as error:
                error.add_note(here.processes.tails())
                raise
            # The VMs go through our roles: they must still run here.
            await here.leave()
    finally:
        await here.processes.stop()
        await api.delete(f"{CONFIGURATIONS}/{CONFIGURATION_NAME}")
        await api.delete(VALIDATING_CONFIGURATION.path(name=CONFIGURATION_NAME))
        await here.kube.close()
        await here.connection.close()
        await api.delete(f"/api/v1/namespaces/{here.system}")
    assert not here.witness.broken, here.witness.broken


async def _register(api: Api, where: str, authority: bytes, *, bare: bool) -> None:
    """Have the API server call all that the chart has it call; `bare`: of validating webhooks, that of starts alone."""
    starts = validating_configuration((start_webhook(where, authority),))
    every = starts if bare else validating(where, authority, GPUBINDER.groups[-1].rpartition(":")[2])
    await api.create(VALIDATING_CONFIGURATION.path(), every)
    await api.create(CONFIGURATIONS, webhook_configuration(where, authority))


@asynccontextmanager
async def _watched(witness: Witness) -> AsyncIterator[None]:
    """Have the witness watch; one that fell asleep fails the test."""
    watching = asyncio.create_task(witness.run())
    try:
        yield
        assert not watching.done(), "the witness stopped watching"
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
