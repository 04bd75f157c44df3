"""The door at 100 requests a second: VMIs and launchers created on the API server, answered by two replicas.

Each request goes the whole way: the API server asks one of two webhook processes, which reads the evidence,
publishes the request and waits until the decision on it is on disk. How long the stages take is read off the
histograms that every replica serves; the rest of what a client waits for is the API server's. Its own time for
the same objects is measured in the same run, on VMIs that ask for no GPUs.

Nothing is written for what was decided: the projector is not asked, since no answer waits for it.
"""

import asyncio
import copy
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from deploy.child import fetch, free_ports
from deploy.local import LocalNats
from deploy.world.launcher import launcher_pod
from deploy.world.virt_config import Config
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME
from schemas.kinds import POD, VMI
from tests.bench.figures import Figure, beside, percentile
from tests.bench.ground import Ground, Say, class_of, kubevirt_resource, nodes_of, tenant_of
from tests.bench.starts import vmi_of
from tests.cluster.api import Api, Object, Refused
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from tests.e2e.stack import Stack, stack

RATE, SECONDS, WARM_S, PLAIN_S, IDLE_S = 100, 60.0, 5.0, 20.0, 10.0
NODES = 20
REPLICAS = ("door-1", "door-2")
SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
STAGES = {"reading the evidence": "evidence", "stream and decision": "decision"}


class Minute(msgspec.Struct):
    """What the client saw: milliseconds of each answered request, and what was refused."""

    waited: list[float] = []
    refused: list[str] = []


class Standing(msgspec.Struct, frozen=True):
    """What stands, and the port of each replica's page of metrics."""

    stack: Stack
    pages: dict[str, int]


class Buckets(msgspec.Struct, frozen=True):
    """A histogram: how many took at most so many seconds, by that bound."""

    counts: dict[float, float]

    def since(self, before: "Buckets") -> "Buckets":
        """Return what was counted after `before`."""
        return Buckets({bound: count - before.counts.get(bound, 0.0) for bound, count in self.counts.items()})

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
    """Measure plain VMIs, then a minute of requests."""
    async with _standing(here) as there, Api(here.plane.kubeconfig(KUBEVIRT_USER)) as kubevirt:
        namespaces = (there.stack.tenant, _other(there.stack.tenant))
        idle = _processor(here, there.stack)
        await asyncio.sleep(IDLE_S)
        idle = {name: (used - idle[name]) / IDLE_S for name, used in _processor(here, there.stack).items()}

        async def timed(seconds: float, ask: Asking) -> tuple[Minute, dict[str, float]]:
            cpu, began = _processor(here, there.stack), time.monotonic()
            seen = await _paced(kubevirt, namespaces, seconds, ask)
            took, count = time.monotonic() - began, len(seen.waited) + len(seen.refused)
            used = {name: now - cpu[name] - took * idle[name] for name, now in _processor(here, there.stack).items()}
            return seen, {name: 1000 * spent / count for name, spent in used.items()}

        say(f"{RATE} VMIs a second without GPUs")
        plain, bare = await timed(PLAIN_S, _plain)
        say("warming up")
        await _paced(kubevirt, namespaces, WARM_S, _request("warm"))
        say(f"{RATE} requests a second for {SECONDS:g} s")
        before = _counted(there)
        asked, used = await timed(SECONDS, _request("vm"))
        after = _counted(there)
        for why in sorted(set(asked.refused))[:5]:
            say(f"refused: {why}")
        return _figures(plain, asked, {name: after[name].since(before[name]) for name in after}, bare, used)


def _figures(
    plain: Minute, asked: Minute, stages: dict[str, Buckets], bare: dict[str, float], used: dict[str, float]
) -> list[Figure]:
    head = f"{RATE} requests/s at the API server"
    figures = [
        beside(f"{head}, {name}, of the same without GPUs", percentile(asked.waited, share), "ms",
               percentile(plain.waited, share))
        for name, share in SHARES
    ]  # fmt: skip
    for label, stage in (*STAGES.items(), ("the webhook as a whole", "whole")):
        figures += [Figure(f"of it {label}, {name}", stages[stage].milliseconds(share), "ms") for name, share in SHARES]
    count = len(asked.waited) + len(asked.refused)
    figures.append(Figure(f"{head}: refused or not answered", float(len(asked.refused)), f"of {count:,}"))
    return figures + [
        beside(f"processor time per request, {name}, of the same without GPUs", spent, "ms", bare[name])
        for name, spent in used.items()
    ]


def _other(tenant: str) -> str:
    return f"{tenant}-2"


@asynccontextmanager
async def _standing(here: Ground) -> AsyncIterator[Standing]:
    """Have everything stand: a binder with ingest, and two replicas of the webhooks, each asked for one namespace."""
    name, directory = here.fresh()
    async with (
        nodes_of(here, name, NODES, 8) as (nodes, _),
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
    path = CONFIGURATION.path(name=CONFIGURATION_NAME)
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


async def _plain(api: Api, namespace: str, number: int) -> None:
    vmi = vmi_of(f"plain-{number}", plain=True)
    del vmi["spec"]["domain"]["devices"]["gpus"]
    await api.create(VMI.path(namespace), vmi)


def _request(prefix: str) -> Asking:
    """Return how to ask: VMIs, and launchers of those that stand already, in turns for each replica."""
    config, made = Config(), dict[str, deque[Object]]()

    async def ask(api: Api, namespace: str, number: int) -> None:
        standing = made.setdefault(namespace, deque())
        if number % 4 >= 2 and standing:
            await api.create(POD.path(namespace), launcher_pod(standing.popleft(), config))
            return
        standing.append(await api.create(VMI.path(namespace), vmi_of(f"{prefix}-{number}")))

    return ask


def _counted(there: Standing) -> dict[str, Buckets]:
    """Return the histograms of both replicas, summed up: of each stage, and of the whole."""
    sums: dict[str, dict[float, float]] = {}
    for page in there.pages.values():
        text = fetch(page, "/metrics")[1].decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in {"gpubinder_admission_seconds_bucket", "gpubinder_admission_stage_seconds_bucket"}:
                    into = sums.setdefault(sample.labels.get("stage", "whole"), {})
                    bound = float(sample.labels["le"])
                    into[bound] = into.get(bound, 0.0) + sample.value
    return {name: Buckets(counts) for name, counts in sums.items()}


def _processor(here: Ground, ready: Stack) -> dict[str, float]:
    """Return the processor seconds that each process has used, the API server's and the client's with it."""
    mine = {name: _cpu(child.pid) for name, child in ready.processes.children.items()}
    others = {"NATS": ready.nats.server.child.pid} if isinstance(ready.nats, LocalNats) else {}
    others |= here.plane.pids
    return mine | {name: _cpu(pid) for name, pid in others.items()} | {"the client": time.process_time()}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
