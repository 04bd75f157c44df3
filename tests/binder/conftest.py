"""Journals for tests: in memory, on one nats-server, on a cluster of three; fresh streams each time.

Servers live as long as a test module, streams as long as a test. Time outs that confirm a loss are
short here: one machine has no old leaders that answer from beyond a partition.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from binder.access import Access
from binder.jetstream import Connection, connect
from binder.journal import BatchJournal
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.local import LocalNats, LocalNatsCluster, NatsServer
from schemas.streams import STREAMS, StreamSpec
from tests.binder.waiting import patient
from tests.servers import stream_leader


@dataclass
class NatsServers:
    """One server or a cluster of three, and how many copies its streams have."""

    cluster: LocalNats | LocalNatsCluster
    replicas: int

    @property
    def port(self) -> int:
        """The client port of one of the servers, for a proxy before it."""
        return (self.cluster.server if isinstance(self.cluster, LocalNats) else self.cluster.servers[0]).port

    @property
    def urls(self) -> tuple[str, ...]:
        """Where clients connect."""
        return (self.cluster.url,) if isinstance(self.cluster, LocalNats) else tuple(self.cluster.urls)

    async def leader(self, stream: str) -> NatsServer:
        """Return the server that leads a stream."""
        if isinstance(self.cluster, LocalNats):
            return self.cluster.server
        return await stream_leader(self.cluster, stream)

    async def crash(self, stream: str) -> None:
        """Kill -9 the server that leads a stream and start it again at once."""
        await (await self.leader(stream)).restart()


@dataclass
class NatsStand:
    """Connections of one test to real servers."""

    servers: NatsServers
    fatal: list[str] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    async def connect(self, *urls: str, call_seconds: float = 5.0) -> Connection:
        """Connect, to the servers or to the URLs given; closed at the end of the test."""
        access = Access(urls or self.servers.urls)
        connection = await connect(access, self.fatal.append, call_seconds=call_seconds)
        self.connections.append(connection)
        return connection

    async def journal(self, *urls: str, call_seconds: float = 5.0) -> JetStreamJournal:
        """Return a journal over a connection of its own."""
        return JetStreamJournal(await self.connect(*urls, call_seconds=call_seconds))

    async def fresh(self, streams: tuple[StreamSpec, ...] = STREAMS, *, call_seconds: float = 5.0) -> JetStreamJournal:
        """Make the streams anew and return a journal."""
        journal = await self.journal(call_seconds=call_seconds)
        for spec in streams:
            await patient(partial(_delete, journal, spec.name))
        await patient(partial(create_streams, journal, replicas=self.servers.replicas, streams=streams))
        return journal

    async def close(self) -> None:
        """Close every connection."""
        for connection in self.connections:
            await connection.close()


async def _delete(journal: JetStreamJournal, stream: str) -> None:
    with suppress(LookupError):
        await journal.manage(f"STREAM.DELETE.{stream}", {}, stream)


def _running(replicas: int, directory: Path) -> Iterator[NatsServers]:
    servers = LocalNats(directory) if replicas == 1 else LocalNatsCluster(directory)
    with asyncio.Runner() as runner:
        runner.run(_enter(servers))
        try:
            yield NatsServers(servers, replicas)
        finally:
            runner.run(servers.__aexit__(None, None, None))


async def _enter(servers: LocalNats | LocalNatsCluster) -> None:
    await servers.__aenter__()


ONE = pytest.param(1, marks=pytest.mark.nats, id="one")
THREE = pytest.param(3, marks=pytest.mark.nats, id="three")


@pytest.fixture(scope="module", params=[ONE, THREE])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """One nats-server, then a cluster of three: they answer refusals in another order (T3)."""
    yield from _running(request.param, tmp_path_factory.mktemp("nats"))


@pytest.fixture(
    scope="module",
    params=[pytest.param(0, id="memory"), pytest.param(-1, id="memory-replicated"), ONE, THREE],
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NatsServers | Callable[[], MemoryJournal]]:
    """Wherever a journal can live."""
    if request.param > 0:
        yield from _running(request.param, tmp_path_factory.mktemp("nats"))
    else:
        yield lambda: MemoryJournal(replicated=request.param < 0)


@pytest.fixture
async def stand(servers: NatsServers) -> AsyncIterator[NatsStand]:
    """Connections to real servers, closed at the end; none may have been closed for good."""
    held = NatsStand(servers)
    yield held
    await held.close()
    assert not held.fatal


@pytest.fixture(scope="module", params=[ONE])
def one_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """One nats-server, for what does not differ between one and three."""
    yield from _running(request.param, tmp_path_factory.mktemp("nats"))


@pytest.fixture
async def one(one_server: NatsServers) -> AsyncIterator[NatsStand]:
    """As `stand`, on one server."""
    held = NatsStand(one_server)
    yield held
    await held.close()
    assert not held.fatal


@pytest.fixture
async def journal(place: NatsServers | Callable[[], MemoryJournal]) -> AsyncIterator[BatchJournal]:
    """Every journal there is, with empty streams."""
    if not isinstance(place, NatsServers):
        yield place()
        return
    held = NatsStand(place)
    # Nobody fails here: an answer that is late on a busy machine is an answer.
    yield await held.fresh(call_seconds=120.0)
    await held.close()
    assert not held.fatal
