"""What a command opens: NATS or a server of its own, the API server, and both as the place where roles run."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import msgspec

from binder.jetstream import CONNECT_SECONDS, Access, Connection, connect
from binder.journal import Unavailable
from binder.kube_client import KubeClient
from binder.stream_journal import JetStreamJournal
from deploy.commands.endings import Failed
from deploy.commands.options import KubeOptions, NatsOptions
from deploy.local import LocalNats

URL_FILE = "url"
"""Beside the embedded server's store: where it listens while it runs."""
_LOST_FOR_GOOD = 70


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

    `make`: an absent `data` is made. Raises `Failed`, `Unavailable`.
    """
    if options.url:
        access = Access(tuple(options.url.split(",")), options.creds, options.ca, options.cert, options.key)
        async with _connected(access) as nats:
            yield nats
        return
    if not make and not options.data.is_dir():
        raise Failed(
            f"no log at {options.data}: name a NATS server with --nats, another directory with --data, "
            f"or begin a log with `gpubinder adopt --fresh`"
        )
    running = options.data / URL_FILE
    if running.exists():
        try:
            async with _connected(Access((running.read_text().strip(),)), seconds=1.0) as nats:
                yield nats
                return
        except Unavailable:
            running.unlink(missing_ok=True)
    async with LocalNats(options.data) as server:
        running.write_text(server.url)
        try:
            async with _connected(Access((server.url,))) as nats:
                yield nats
        finally:
            running.unlink(missing_ok=True)


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
