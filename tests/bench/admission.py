"""Admission while ingest lists 10,000 pods anew: how long answers take, beside a quiet minute.

Reviews of VMIs and launchers go straight to our webhook over TLS, at a steady rate; each is published,
decided and read back from the log. The list is forced by starting ingest again: each start is a new
session of every kind. Ingest has a process of its own here, so that the webhooks outlive it.
"""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from binder.stream_journal import JetStreamJournal
from deploy.world.launcher import launcher_pod
from deploy.world.virt_config import Config
from schemas.admission import POD_PATH, REVIEW_API_VERSION, REVIEW_KIND, VMI_PATH
from schemas.events import SessionOpened, SessionSynced, decode_event
from schemas.kinds import POD, VMI, Resource
from schemas.streams import EVENTS
from tests.bench.figures import Figure, beside, percentile
from tests.bench.ground import Ground, Say, program
from tests.bench.starts import vmi_of
from tests.cluster.api import Object
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from tests.e2e.stack import Stack

PODS, NODES = 10_000, 50
RATE, QUIET_S = 20, 60.0
RELISTS = 5
MAKERS = 32
RELIST_SECONDS = 300.0
PROCESSES = {"core": ("binder", "projector", "webhooks"), "ingest": ("ingest",)}


class Answer(msgspec.Struct, frozen=True):
    """One answered review: when it was sent and answered, in the loop's seconds, and whether it was let pass."""

    sent: float
    answered: float
    allowed: bool


class Stretch(msgspec.Struct, frozen=True):
    """From when to when."""

    begin: float
    end: float

    def of(self, answers: list[Answer]) -> list[float]:
        """Return the milliseconds of the answers that were waited for in this stretch."""
        return [
            1000 * (one.answered - one.sent) for one in answers if one.answered > self.begin and one.sent < self.end
        ]


async def measure(here: Ground, say: Say) -> list[Figure]:
    """Measure a quiet minute, then a few lists of all pods."""
    loop = asyncio.get_running_loop()
    async with program(here, NODES, 1, processes=PROCESSES) as ready:
        say(f"creating {PODS:,} pods")
        await _pods(ready)
        await _relist(ready)
        async with asking(here, ready) as answers:
            say(f"{RATE} reviews a second, a quiet minute")
            began = loop.time()
            await asyncio.sleep(QUIET_S)
            quiet = Stretch(began, loop.time())
            lists = []
            for number in range(1, RELISTS + 1):
                lists.append(await _relist(ready))
                say(f"list {number} of {RELISTS}: {lists[-1].end - lists[-1].begin:.1f} s")
        return _figures(answers, quiet, lists)


def _figures(answers: list[Answer], quiet: Stretch, lists: list[Stretch]) -> list[Figure]:
    calm, busy = quiet.of(answers), [wait for stretch in lists for wait in stretch.of(answers)]
    seconds = percentile([one.end - one.begin for one in lists], 0.5)
    head = f"admission during a list of {PODS:,} pods"
    return [
        beside(f"{head}, p99", percentile(busy, 0.99), "ms", percentile(calm, 0.99)),
        beside(f"{head}, p50", percentile(busy, 0.5), "ms", percentile(calm, 0.5)),
        Figure(f"{head}: not answered in time", float(sum(not one.allowed for one in answers)), "reviews"),
        Figure(f"{head}: how fast it is read and folded", PODS / seconds, "pods/s"),
    ]


async def _pods(ready: Stack) -> None:
    """Create pods that stand on nodes: their room counts, so each of them is published."""
    at_once = asyncio.Semaphore(MAKERS)
    listed = await ready.api.get("/api/v1/nodes")
    nodes = [node["metadata"]["name"] for node in listed["items"]]
    requests = {"cpu": "10m", "memory": "16Mi"}

    async def make(number: int) -> None:
        container = {"name": "main", "image": "registry.example.org/app:1", "resources": {"requests": requests}}
        spec = {"nodeName": nodes[number % len(nodes)], "containers": [container]}
        async with at_once:
            await ready.api.create(POD.path(ready.tenant), {"metadata": {"name": f"pod-{number:05}"}, "spec": spec})

    await asyncio.gather(*map(make, range(PODS)))


async def _relist(ready: Stack) -> Stretch:
    """Start ingest again; return from when to when it listed the pods."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(ready.processes.children["ingest"].stop)
    seen = (await ready.journal.info(EVENTS)).last
    await ready.processes.revive("ingest")
    async with asyncio.timeout(RELIST_SECONDS):
        return await _session(ready.journal, seen + 1, loop)


async def _session(journal: JetStreamJournal, start: int, loop: asyncio.AbstractEventLoop) -> Stretch:
    """Wait for the next session of pods to be opened and listed."""
    began = 0.0
    async for run in journal.read(EVENTS, start):
        for message in run:
            event = decode_event(message.body)
            if isinstance(event, SessionOpened) and event.kind == POD.plural:
                began = loop.time()
            if isinstance(event, SessionSynced) and event.kind == POD.plural:
                return Stretch(began, loop.time())
    raise RuntimeError("EVENTS ended")


@asynccontextmanager
async def asking(here: Ground, ready: Stack) -> AsyncIterator[list[Answer]]:
    """Send reviews at a steady rate for the length of a block; yields the answers as they come."""
    answers: list[Answer] = []
    tls = ssl.create_default_context(cadata=here.plane.authority.pem.decode())
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    url = f"https://127.0.0.1:{ready.processes.port}"
    async with aiohttp.ClientSession(url, connector=connector) as session, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(_ask(session, ready.tenant, answers, tasks))
        yield answers
        asking.cancel()


async def _ask(session: aiohttp.ClientSession, namespace: str, answers: list[Answer], tasks: asyncio.TaskGroup) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in itertools.count():
        tasks.create_task(_one(session, namespace, number, answers))
        await asyncio.sleep(began + (number + 1) / RATE - loop.time())


async def _one(session: aiohttp.ClientSession, namespace: str, number: int, answers: list[Answer]) -> None:
    loop = asyncio.get_running_loop()
    path, body = _review(namespace, number)
    sent = loop.time()
    async with session.post(path, data=body) as response:
        said = msgspec.json.decode(await response.read())
    answers.append(Answer(sent, loop.time(), said["response"]["allowed"]))


def _review(namespace: str, number: int) -> tuple[str, bytes]:
    """Return path and body of a review: of a VMI and of a launcher in turns."""
    vmi = vmi_of(f"asked-{number:06}")
    if number % 2 == 0:
        return VMI_PATH, _envelope(VMI, vmi, namespace, f"vmi-{number}")
    vmi["metadata"] |= {"uid": f"uid-{number}", "namespace": namespace}
    return POD_PATH, _envelope(POD, launcher_pod(vmi, Config()), namespace, f"pod-{number}")


def _envelope(resource: Resource, body: Object, namespace: str, uid: str) -> bytes:
    request = {
        "uid": uid,
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "operation": "CREATE",
        "namespace": namespace,
        "name": body["metadata"].get("name", ""),
        "userInfo": {"username": KUBEVIRT_USER.name},
        "object": body,
    }
    return msgspec.json.encode({"apiVersion": REVIEW_API_VERSION, "kind": REVIEW_KIND, "request": request})
