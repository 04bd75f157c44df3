"""The door at 100 requests a second: VMIs and launchers created on the API server, answered by two replicas.

Each request goes the whole way: the API server asks one of two webhook processes, which reads the evidence,
publishes the request and waits until the decision on it is on disk. How long the stages take is read off the
histograms that every replica serves; the rest of what a client waits for is the API server's. Its own time for
the same objects is measured in the same run, on VMIs and launchers that ask for no GPUs.

Nothing is written for what was decided: the projector is not asked, since no answer waits for it. Launchers carry a
gate of the benchmark's, so that kube-scheduler has nothing to do with either kind.
"""

import asyncio
import copy
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import fmean

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from deploy.child import fetch, free_ports
from deploy.local import LocalNats
from deploy.world.launcher import launcher_pod
from deploy.world.virt_config import Config
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME, VALIDATING_CONFIGURATION
from schemas.kinds import POD, VMI
from schemas.names import POLICY_REFUSE, POLICY_WAIT
from tests.bench.figures import Figure, beside, percentile
from tests.bench.ground import Ground, Say, class_of, kubevirt_resource, nodes_of, tenant_of
from tests.bench.processor import busy_s, used_s
from tests.bench.starts import vmi_of
from tests.cluster.api import Api, Object, Refused
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from tests.e2e.stack import Stack, stack

RATE, SECONDS, WARM_S, PLAIN_S, IDLE_S = 100, 60.0, 5.0, 20.0, 10.0
NODES, UNITS = 20, 400
"""Room for all that `Refuse` books in the time."""
REPLICAS = ("door-1", "door-2")
SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
STAGES = {"reading the evidence": "evidence", "stream and decision": "decision"}
CLIENT, ALL_OF_IT = "the client", "all but the client"
OWN_GATE = {"name": "bench.gpubinder/held"}


class Minute(msgspec.Struct):
    """What the client saw: milliseconds of each answered request, what was refused, how late it asked itself.

    `cpu`: processor time per request by process, in milliseconds. `cores`: used by all of them together, and by
    everything else on the machine.
    """

    waited: list[float] = []
    refused: list[str] = []
    late: list[float] = []
    cpu: dict[str, float] = {}
    cores: tuple[float, float] = (0.0, 0.0)

    @property
    def count(self) -> int:
        """How many were asked for."""
        return len(self.waited) + len(self.refused)


class Standing(msgspec.Struct, frozen=True):
    """What stands, and the port of each replica's page of metrics."""

    stack: Stack
    pages: dict[str, int]


class Buckets(msgspec.Struct, frozen=True):
    """A histogram: how many took at most so many seconds, by that bound; all their seconds together."""

    counts: dict[float, float]
    seconds: float = 0.0

    def since(self, before: "Buckets") -> "Buckets":
        """Return what was counted after `before`."""
        counts = {bound: count - before.counts.get(bound, 0.0) for bound, count in self.counts.items()}
        return Buckets(counts, self.seconds - before.seconds)

    def milliseconds(self, share: float) -> float:
        """Return the percentile, as far as the bounds tell: between two of them it is drawn as a straight line."""
        bounds = sorted(self.counts)
        wanted, below, under = share * self.counts[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            count = self.counts[bound]
            if count >= wanted:
                within = (wanted - under) / (count - under) if count > under else 0.0
                return 1000 * (below + within * (min(bound, 60.0) - below))
            below, under = bound, count
        return 1000 * below


async def measure(here: Ground, say: Say) -> list[Figure]:
    """Measure plain VMIs and launchers, then a minute of requests, under the policy `Wait`."""
    return await _measured(here, say, POLICY_WAIT)


async def measure_refuse(here: Ground, say: Say) -> list[Figure]:
    """Measure the same under `Refuse`: each VMI is asked about twice, and booked by the second answer."""
    return await _measured(here, say, POLICY_REFUSE)


async def _measured(here: Ground, say: Say, policy: str) -> list[Figure]:
    async with _standing(here) as there, Api(here.plane.kubeconfig(KUBEVIRT_USER)) as kubevirt:
        await there.stack.policy(policy)
        namespaces = (there.stack.tenant, _other(there.stack.tenant))
        idle = _processor(here, there.stack)
        await asyncio.sleep(IDLE_S)
        idle = {name: (used - idle[name]) / IDLE_S for name, used in _processor(here, there.stack).items()}

        async def timed(seconds: float, ask: Asking) -> Minute:
            cpu, busy, began = _processor(here, there.stack), busy_s(), time.monotonic()
            seen = await _paced(kubevirt, namespaces, seconds, ask)
            took = time.monotonic() - began
            used = {name: now - cpu[name] for name, now in _processor(here, there.stack).items()}
            ours = sum(used.values())
            seen.cores = (ours / took, (busy_s() - busy - ours) / took)
            seen.cpu = {name: 1000 * (spent - took * idle[name]) / seen.count for name, spent in used.items()}
            return seen

        say(f"{RATE} VMIs and launchers a second without GPUs")
        plain = await timed(PLAIN_S, _request("plain", plain=True))
        say("warming up")
        await _paced(kubevirt, namespaces, WARM_S, _request("warm"))
        say(f"{RATE} requests a second for {SECONDS:g} s, policy {policy}")
        before = _counted(there)
        asked = await timed(SECONDS, _request("vm"))
        after = _counted(there)
        for why in sorted(set(asked.refused))[:5]:
            say(f"refused: {why}")
        return _figures(policy, plain, asked, {name: after[name].since(before[name]) for name in after})


def _figures(policy: str, plain: Minute, asked: Minute, stages: dict[str, Buckets]) -> list[Figure]:
    head = f"{RATE} requests/s, {policy}, at the API server"
    figures = [
        beside(f"{head}, {name}, of the same without GPUs", percentile(asked.waited, share), "ms",
               percentile(plain.waited, share))
        for name, share in SHARES
    ]  # fmt: skip
    for label, stage in (*STAGES.items(), ("the webhook as a whole", "whole")):
        figures += [Figure(f"of it {label}, {name}", stages[stage].milliseconds(share), "ms") for name, share in SHARES]
    inside = 1000 * stages["whole"].seconds / asked.count
    figures += [
        # Means can be taken from each other, percentiles can't.
        beside("of it the API server's own, mean", fmean(asked.waited) - inside, "ms", fmean(plain.waited)),
        Figure(f"{head}: refused or not answered", float(len(asked.refused)), f"of {asked.count:,}"),
        beside(
            "asked late by the client itself, p99", percentile(asked.late, 0.99), "ms", percentile(plain.late, 0.99)
        ),
        beside("cores used by all processes, the client among them", asked.cores[0], "cores", plain.cores[0]),
        beside("cores used by others on the machine", asked.cores[1], "cores", plain.cores[1]),
    ]
    sums = (
        {ALL_OF_IT: sum(asked.cpu.values()) - asked.cpu[CLIENT]},
        {ALL_OF_IT: sum(plain.cpu.values()) - plain.cpu[CLIENT]},
    )
    return figures + [
        beside(f"processor time per request, {name}, of the same without GPUs", spent, "ms", bare)
        for used, without in ((asked.cpu, plain.cpu), sums)
        for name, spent, bare in ((name, used[name], without[name]) for name in used)
    ]


def _other(tenant: str) -> str:
    return f"{tenant}-2"


@asynccontextmanager
async def _standing(here: Ground) -> AsyncIterator[Standing]:
    """Have everything stand: a binder with ingest, and two replicas of the webhooks, each asked for one namespace."""
    name, directory = here.fresh()
    async with (
        nodes_of(here, name, NODES, UNITS) as (nodes, _),
        tenant_of(here, name),
        tenant_of(here, _other(name)),
        LocalNats(directory / "nats") as nats,
        kubevirt_resource(here),
        stack(here.plane, here.api, nodes, nats, name, directory, bare=True) as up,
        class_of(here),
    ):
        pages = free_ports(3)
        up.processes.start("binder", ["binder", "ingest"], health=pages[0])
        ports = [up.processes.port, *free_ports(1)]
        for replica, page, port in zip(REPLICAS, pages[1:], ports, strict=True):
            up.processes.port = port
            up.processes.start(replica, ["webhooks"], health=page)
        await _split(here.api, (name, _other(name)), ports)
        await up.ready()
        try:
            yield Standing(up, dict(zip(REPLICAS, pages[1:], strict=True)))
        finally:
            for namespace in (name, _other(name)):
                await here.api.delete(POD.path(namespace), gracePeriodSeconds="0")
                await here.api.delete(VMI.path(namespace))


async def _split(api: Api, namespaces: tuple[str, ...], ports: list[int]) -> None:
    """Have one replica asked for each namespace, as a Service would spread requests."""
    for configuration in (CONFIGURATION, VALIDATING_CONFIGURATION):
        path = configuration.path(name=CONFIGURATION_NAME)
        found = await api.get(path)
        webhooks = []
        for number, (namespace, port) in enumerate(zip(namespaces, ports, strict=True)):
            for webhook in copy.deepcopy(found["webhooks"]):
                url = webhook["clientConfig"]["url"]
                webhook["clientConfig"]["url"] = url.replace(f":{ports[0]}/", f":{port}/")
                webhook["name"] = f"r{number}.{webhook['name']}"
                webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
                webhooks.append(webhook)
        await api.replace(path, found | {"webhooks": webhooks})


Asking = Callable[[Api, str, int], Awaitable[None]]


async def _paced(api: Api, namespaces: tuple[str, ...], seconds: float, ask: Asking) -> Minute:
    """Ask at a steady rate, whether or not the answers keep up; wait for all of them."""
    loop = asyncio.get_running_loop()
    seen, began = Minute(), loop.time()

    async def one(number: int) -> None:
        sent = loop.time()
        seen.late.append(1000 * (sent - began - number / RATE))
        try:
            await ask(api, namespaces[number % len(namespaces)], number)
        except (Refused, ValueError) as refused:
            # An API server that is too busy says so in plain text.
            seen.refused.append(str(refused))
        else:
            seen.waited.append(1000 * (loop.time() - sent))

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(RATE * seconds)):
            await asyncio.sleep(began + number / RATE - loop.time())
            tasks.create_task(one(number))
    return seen


def _request(prefix: str, *, plain: bool = False) -> Asking:
    """Return how to ask: VMIs, and launchers of those that stand already, in turns for each replica.

    `plain`: the same objects without what refers to GPUs.
    """
    config, made = Config(), dict[str, deque[Object]]()

    async def ask(api: Api, namespace: str, number: int) -> None:
        standing = made.setdefault(namespace, deque())
        if number % 4 >= 2 and standing:
            pod = launcher_pod(standing.popleft(), config)
            pod["spec"]["schedulingGates"] = [OWN_GATE]
            await api.create(POD.path(namespace), pod)
            return
        vmi = vmi_of(f"{prefix}-{number}")
        if plain:
            del vmi["metadata"]["labels"], vmi["metadata"]["annotations"]
        standing.append(await api.create(VMI.path(namespace), vmi))

    return ask


def _counted(there: Standing) -> dict[str, Buckets]:
    """Return the histograms of both replicas, summed up: of each stage, and of the whole."""
    sums: dict[str, dict[float, float]] = {}
    seconds = dict[str, float]()
    for page in there.pages.values():
        text = fetch(page, "/metrics")[1].decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if family.name not in {"gpubinder_admission_seconds", "gpubinder_admission_stage_seconds"}:
                    continue
                stage = sample.labels.get("stage", "whole")
                if sample.name.endswith("_sum"):
                    seconds[stage] = seconds.get(stage, 0.0) + sample.value
                elif sample.name.endswith("_bucket"):
                    into = sums.setdefault(stage, {})
                    bound = float(sample.labels["le"])
                    into[bound] = into.get(bound, 0.0) + sample.value
    return {name: Buckets(counts, seconds[name]) for name, counts in sums.items()}


def _processor(here: Ground, ready: Stack) -> dict[str, float]:
    """Return the processor seconds that each process has used, the API server's and the client's with it."""
    mine = {name: used_s(child.pid) for name, child in ready.processes.children.items()}
    others = {"NATS": ready.nats.server.child.pid} if isinstance(ready.nats, LocalNats) else {}
    others |= here.plane.pids
    return mine | {name: used_s(pid) for name, pid in others.items()} | {CLIENT: time.process_time()}
