"""Access to NATS by credentials and TLS files, and what is said when it is refused (T4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from binder.access import Access, Unusable
from binder.jetstream import Connection, connect
from binder.journal import Denied, Unavailable
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import check_streams, create_streams
from deploy.child import Child, fetch, free_ports
from deploy.local import find_nats_server
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.waiting import eventually, true
from tests.cluster.certificates import Authority
from tests.error_logs import ErrorLogs
from tests.nats_accounts import Accounts

pytestmark = pytest.mark.nats


class _Server:
    """A nats-server with a configuration of the test's own."""

    def __init__(self, directory: Path, lines: str) -> None:
        self.port, self._monitor = free_ports(2)
        config = directory / "nats.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nhttp: 127.0.0.1:{self._monitor}\nmax_payload: 4MB\n"
            f"jetstream {{ store_dir: '{directory}/data' }}\n{lines}"
        )
        self.child = Child("nats-server", [find_nats_server(), "-c", config], directory / "log")

    def start(self) -> None:
        """Start and wait until it is healthy; blocks."""
        self.child.spawn()
        self.child.await_answer(lambda: fetch(self._monitor, "/healthz")[0] == 200, what="healthy", seconds=60)


@asynccontextmanager
async def _running(directory: Path, lines: str) -> AsyncIterator[_Server]:
    server = _Server(directory, lines)
    await asyncio.to_thread(server.start)
    try:
        yield server
    finally:
        await asyncio.to_thread(server.child.stop)


@asynccontextmanager
async def _connected(access: Access, *, seconds: float = 60) -> AsyncIterator[Connection]:
    connection = await connect(access, pytest.fail, seconds=seconds)
    try:
        yield connection
    finally:
        await connection.close()


async def test_credentials_files_say_who_may_what(tmp_path: Path, error_logs: ErrorLogs) -> None:
    """T4: the installer's credentials make the streams, the binder's may only use them, and are told so at once."""
    accounts = Accounts()
    forbidden = ["$JS.API.STREAM.UPDATE.>", "$JS.API.STREAM.DELETE.>", "$JS.API.STREAM.CREATE.>"]
    installer = accounts.credentials(tmp_path / "installer.creds")
    binder = accounts.credentials(tmp_path / "binder.creds", may_not_publish=forbidden)
    async with _running(tmp_path, accounts.config) as server:
        url = (f"nats://127.0.0.1:{server.port}",)
        async with _connected(Access(url, creds=installer)) as connection:
            await create_streams(JetStreamJournal(connection), replicas=1)
        async with _connected(Access(url, creds=binder)) as connection:
            journal = JetStreamJournal(connection)
            await check_streams(journal)
            assert await journal.append(EVENTS, EVENTS_TICK, b"", message_id="a") == 1
            assert [len(run) async for run in journal.read(EVENTS, 1, until=1)] == [1]
            error_logs.expect("nats permission missing")
            with pytest.raises(Denied, match="may not publish"):
                await journal.manage(f"STREAM.DELETE.{EVENTS}", {}, EVENTS)
            assert (await journal.info(EVENTS)).last == 1


async def _is_refused(access: Access) -> bool:
    """Say whether the error tells why there is no connection; tries that hear the server's hanging up alone do not."""
    with pytest.raises(Unavailable) as refused:
        await connect(access, pytest.fail, seconds=3)
    return "authorization refused" in str(refused.value)


async def test_a_stranger_is_refused_with_the_reason(tmp_path: Path) -> None:
    """T4: without credentials, or with another operator's, the error says that it was authorization."""
    strangers = Accounts().credentials(tmp_path / "stranger.creds")
    async with _running(tmp_path, Accounts().config) as server:
        url = (f"nats://127.0.0.1:{server.port}",)
        for access in (Access(url), Access(url, creds=strangers)):
            await eventually(partial(_is_refused, access), "the reason is told")


@pytest.mark.parametrize(
    "url",
    ["nats://user:hunter2@127.0.0.1:port", "::::hunter2", "http://hunter2@h:1", "", "nats://:4222", "nats://[hunter2"],
)
async def test_a_url_that_names_no_server_is_told_apart(url: str) -> None:
    """T4: before anything is tried, and without repeating what may hold a password."""
    with pytest.raises(Unusable, match="URL 2 of 2 is none: write nats://HOST:PORT") as told:
        await connect(Access(("nats://127.0.0.1:1", url)), pytest.fail, seconds=2)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("text", [None, "no credentials at all\n"])
async def test_credentials_that_are_none_are_named(tmp_path: Path, text: str | None) -> None:
    """A missing file, or one that holds something else, is said by name, before anything is tried."""
    file = tmp_path / "my.creds"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Unusable, match=r"my\.creds: no NATS credentials"):
        await connect(Access(("nats://127.0.0.1:1",), creds=file), pytest.fail, seconds=2)


@pytest.mark.parametrize("text", [None, "no certificate\n"])
@pytest.mark.parametrize("which", ["ca", "cert"])
async def test_a_tls_file_that_is_none_is_named(tmp_path: Path, which: str, text: str | None) -> None:
    """The TLS library names no file: we do."""
    file = tmp_path / "my.pem"
    if text is not None:
        file.write_text(text)
    access = Access(("tls://127.0.0.1:1",), **{which: file})
    with pytest.raises(Unusable, match=r"my\.pem: no PEM file"):
        await connect(access, pytest.fail, seconds=2)


def _tls(directory: Path, server: Authority, clients: Authority) -> str:
    certificate, key = server.issue()
    (directory / "server.pem").write_bytes(certificate)
    (directory / "server.key").write_bytes(key)
    (directory / "clients.pem").write_bytes(clients.pem)
    (directory / "ca.pem").write_bytes(server.pem)
    files = f"cert_file: '{directory}/server.pem', key_file: '{directory}/server.key'"
    return f"tls {{ {files}, ca_file: '{directory}/clients.pem', verify: true }}\n"


def _client(directory: Path, authority: Authority) -> tuple[Path, Path]:
    cert, key = directory / "client.pem", directory / "client.key"
    for file, text in zip((cert, key), authority.issue(), strict=True):
        file.write_bytes(text)
    return cert, key


async def test_tls_files_prove_both_sides(tmp_path: Path) -> None:
    """T4: the CA file is who we believe, certificate and key are who we are; another CA is not believed."""
    servers, clients = Authority.new(), Authority.new()
    lines = _tls(tmp_path, servers, clients)
    cert, key = _client(tmp_path, clients)
    async with _running(tmp_path, lines) as server:
        url = (f"tls://127.0.0.1:{server.port}",)
        async with _connected(Access(url, ca=tmp_path / "ca.pem", cert=cert, key=key)) as connection:
            await create_streams(JetStreamJournal(connection), replicas=1)
        (tmp_path / "other.pem").write_bytes(Authority.new().pem)

        async def is_disbelieved() -> bool:
            with pytest.raises(Unavailable) as refused:
                await connect(Access(url, ca=tmp_path / "other.pem", cert=cert, key=key), pytest.fail, seconds=2)
            return "SSL" in str(refused.value)

        await eventually(is_disbelieved, "the reason is told")


async def test_a_renewed_certificate_serves_the_next_connection(tmp_path: Path) -> None:
    """The files are read again for each try to connect: a client outlives its first certificate, and the first CA.

    Which side is renewed first does not matter: here it is the server.
    """
    first, second = (Authority.new(), Authority.new()), (Authority.new(), Authority.new())
    lines = _tls(tmp_path, *first)
    cert, key = _client(tmp_path, first[1])
    ca = tmp_path / "trusted.pem"
    ca.write_bytes(first[0].pem)
    async with _running(tmp_path, lines) as server:
        access = Access((f"tls://127.0.0.1:{server.port}",), ca=ca, cert=cert, key=key)
        async with _connected(access) as connection:
            _tls(tmp_path, *second)
            server.child.kill()
            await eventually(lambda: true(not connection.connected), "the loss is noticed")
            await asyncio.to_thread(server.start)
            _client(tmp_path, second[1])
            ca.write_bytes(second[0].pem)

            await eventually(lambda: true(connection.connected), "the connection is back")
