"""What a command opens: NATS or a server of its own, the API server, and both as the place where roles run."""

import asyncio
import fcntl
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO

import msgspec
import structlog

from binder.access import Access
from binder.jetstream import CONNECT_SECONDS, Connection, connect
from binder.journal import Unavailable
from binder.kube_client import KubeClient
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import StreamsDiffer, check_streams, check_sync
from deploy.commands.endings import Failed
from deploy.commands.options import KubeOptions, NatsOptions
from deploy.local import LocalNats

URL_FILE, LOCK_FILE = "url", "lock"
"""Beside the embedded server's store: where it listens while it runs, and who may run one."""
_LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 1.0
_LOST_FOR_GOOD = 70

_log = structlog.get_logger(__name__)


def program() -> str:
    """Return this program's version, as frames name it."""
    return version("gpubinder")


def identity() -> str:
    """Return a name for this process that no other has: it holds leases and opens epochs."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"


class Nats(msgspec.Struct, frozen=True):
    """A connection to NATS and the journal on it."""

    connection: Connection
    journal: JetStreamJournal


@asynccontextmanager
async def open_nats(options: NatsOptions, *, make: bool = False) -> AsyncIterator[Nats]:
    """Connect to NATS, or to the embedded server over `data`: one that runs already, else one of our own.

    `make`: an absent `data` is made. Raises `Failed`, `Unavailable`, `StreamsDiffer`.
    """
    if options.url:
        access = Access(tuple(options.url.split(",")), options.creds, options.ca, options.cert, options.key)
        for monitor in options.monitors:
            # Clients can't ask whether a write is on the disk when it is acknowledged; who watches the server can.
            await asyncio.to_thread(check_sync, monitor)
        async with _connected(access) as nats:
            yield nats
        return
    if not make and not options.data.is_dir():
        raise Failed(
            f"no log at {options.data}: name a NATS server with --nats, another directory with --data, "
            f"or begin a log with `gpubinder adopt --fresh`"
        )
    options.data.mkdir(parents=True, exist_ok=True)
    with (options.data / LOCK_FILE).open("w") as lock:
        opened = _embedded(options.data) if _taken(lock) else _neighbour(options.data)
        async with opened as nats:
            yield nats


@asynccontextmanager
async def open_begun(options: NatsOptions, seconds: float) -> AsyncIterator[Nats]:
    """Connect as `open_nats`, to streams that stand as they must; wait so long for a server, and a log, to come.

    Raises as `open_nats`.
    """
    loop = asyncio.get_running_loop()
    end, told = loop.time() + seconds, ""
    async with AsyncExitStack() as stack:
        while True:
            try:
                async with AsyncExitStack() as trial:
                    nats = await trial.enter_async_context(open_nats(options))
                    await check_streams(nats.journal)
                    stack.push_async_exit(trial.pop_all())
                    break
            except (Unavailable, StreamsDiffer) as error:
                if loop.time() >= end:
                    raise
                if str(error) != told:
                    told = str(error)
                    _log.info("waiting for the log", seconds=seconds, why=told)
            await asyncio.sleep(_AGAIN_SECONDS)
        yield nats


def _taken(lock: IO[str]) -> bool:
    """Take the lock on a store if nobody holds it; it goes with the process, however that ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@asynccontextmanager
async def _embedded(data: Path) -> AsyncIterator[Nats]:
    """Run a server over the store, and tell others where it listens: two servers on one store would ruin it."""
    told = data / URL_FILE
    async with LocalNats(data) as server:
        told.write_text(server.url)
        try:
            async with _connected(Access((server.url,))) as nats:
                yield nats
        finally:
            told.unlink(missing_ok=True)


@asynccontextmanager
async def _neighbour(data: Path) -> AsyncIterator[Nats]:
    """Use the server that another process runs over the store; it may still be starting."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CONNECT_SECONDS
    while not (url := _told(data)):
        if loop.time() > end:
            raise Failed(f"{data}: another process holds it and serves no NATS there; end it, or name another --data")
        await asyncio.sleep(_LOOK_SECONDS)
    async with _connected(Access((url,))) as nats:
        yield nats


def _told(data: Path) -> str:
    try:
        return (data / URL_FILE).read_text().strip()
    except FileNotFoundError:
        return ""


@asynccontextmanager
async def _connected(access: Access, *, seconds: float = CONNECT_SECONDS) -> AsyncIterator[Nats]:
    connection = await connect(access, _lost, seconds=seconds)
    try:
        yield Nats(connection, JetStreamJournal(connection))
    finally:
        await connection.close()


def _lost(why: str) -> None:
    """The NATS client gave up for good: nothing can go on, a restart begins anew."""
    sys.stderr.write(f"gpubinder: NATS connection lost for good: {why}\n")
    sys.stderr.flush()
    os._exit(_LOST_FOR_GOOD)


@asynccontextmanager
async def open_kube(options: KubeOptions) -> AsyncIterator[KubeClient]:
    """Log in to the API server; the client is closed with the block. Raises `LoginError`."""
    kube = await KubeClient.connect(kubeconfig=options.kubeconfig, context=options.context)
    try:
        yield kube
    finally:
        await kube.close()
