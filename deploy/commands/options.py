"""Options that commands share: how to reach NATS and the API server, how to print."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from binder.jetstream import CONNECT_SECONDS, Access, Connection, connect
from binder.journal import Unavailable
from binder.kube_client import KubeClient
from binder.stream_journal import JetStreamJournal
from deploy.local import LocalNats
from deploy.roles import Place

OUT = Console(soft_wrap=False)
ERR = Console(stderr=True)

NatsUrl = Annotated[
    str,
    typer.Option(
        "--nats", envvar="GPUBINDER_NATS_URL", help="NATS server URLs, comma separated. Without it: an embedded server."
    ),
]
NatsCreds = Annotated[
    Path | None, typer.Option("--nats-creds", envvar="GPUBINDER_NATS_CREDS", help="NATS credentials file.")
]
NatsCa = Annotated[Path | None, typer.Option("--nats-ca", envvar="GPUBINDER_NATS_CA", help="CA file for NATS TLS.")]
NatsCert = Annotated[
    Path | None, typer.Option("--nats-cert", envvar="GPUBINDER_NATS_CERT", help="Client certificate for NATS TLS.")
]
NatsKey = Annotated[
    Path | None, typer.Option("--nats-key", envvar="GPUBINDER_NATS_KEY", help="Key of the client certificate.")
]
Data = Annotated[
    Path,
    typer.Option("--data", envvar="GPUBINDER_DATA", help="Where the embedded NATS keeps its streams."),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig", envvar="KUBECONFIG", help="Kubeconfig file. Without it: in-cluster, then ~/.kube/config."
    ),
]
Context = Annotated[str, typer.Option("--context", help="Context of the kubeconfig.")]
Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", envvar="GPUBINDER_NAMESPACE", help="Namespace of settings, leases and anchor."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

DEFAULT_NAMESPACE = "gpubinder-system"
DEFAULT_DATA = Path(os.environ.get("XDG_STATE_HOME", "~/.local/state")).expanduser() / "gpubinder"


class Failed(Exception):
    """A command can't do its work; the message is for the person at the terminal. `code`: the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class NatsOptions(msgspec.Struct, frozen=True):
    """How to reach NATS: `url` empty means an embedded server over `data`."""

    url: str = ""
    creds: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    data: Path = DEFAULT_DATA


class KubeOptions(msgspec.Struct, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = DEFAULT_NAMESPACE


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
async def open_nats(options: NatsOptions) -> AsyncIterator[Nats]:
    """Connect to NATS, or to the embedded server over `data`: one that runs already, else one of our own."""
    if options.url:
        access = Access(tuple(options.url.split(",")), options.creds, options.ca, options.cert, options.key)
        async with _connected(access) as nats:
            yield nats
        return
    running = options.data / "url"
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
    ERR.print(f"[red]NATS connection lost for good:[/] {why}")
    sys.stderr.flush()
    os._exit(70)


@asynccontextmanager
async def open_kube(options: KubeOptions) -> AsyncIterator[KubeClient]:
    """Log in to the API server; the client is closed with the block."""
    kube = await KubeClient.connect(kubeconfig=options.kubeconfig, context=options.context)
    try:
        yield kube
    finally:
        await kube.close()


@asynccontextmanager
async def open_place(nats: NatsOptions, kube: KubeOptions) -> AsyncIterator[Place]:
    """Open both and return the place where roles run."""
    async with open_nats(nats) as opened, open_kube(kube) as client:
        yield Place(client, opened.journal, opened.connection, kube.namespace, identity(), program())
