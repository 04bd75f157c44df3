"""A front desk on real sockets: a server with fresh certificates, and clients that trust their authority."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from schemas.kinds import VMI
from tests.webhooks.given import Desk, Said, review, said, until, vmi
from tests.webhooks.made import rotate
from webhooks.server import Listen, Server

HOSTS = ("localhost", "127.0.0.1")


class Stand:
    """A server that listens, its files, and a client that trusts its authority."""

    def __init__(self, server: Server, files: Path, bundle: bytes) -> None:
        self.server, self.files, self.bundle = server, files, bundle
        self.url = f"https://127.0.0.1:{server.port}"

    def client(self, *, keep_alive: bool = True) -> aiohttp.ClientSession:
        """Return a client as the API server is one: it checks the certificate against the bundle."""
        trust = ssl.create_default_context(cadata=self.bundle.decode())
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, force_close=not keep_alive))

    async def served(self) -> int:
        """Return the serial number of the certificate that a new connection meets."""
        return (await self.meet("127.0.0.1"))["serialNumber"]  # type: ignore[no-any-return]  # ssl's own dict

    async def meet(self, host: str) -> dict[str, Any]:
        """Shake hands under a name and return the certificate that was shown."""
        trust = ssl.create_default_context(cadata=self.bundle.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=trust, server_hostname=host)
        shown: dict[str, Any] = writer.get_extra_info("peercert")
        writer.close()
        await writer.wait_closed()
        return shown


@asynccontextmanager
async def standing(desk: Desk, directory: Path, **listen: Any) -> AsyncIterator[Stand]:  # noqa: ANN401 - of Listen
    """Serve the desk from a directory with fresh certificates."""
    bundle = rotate(directory, HOSTS, datetime.now(UTC))
    files = Listen(directory / "tls.crt", directory / "tls.key", host="127.0.0.1", port=0, reload_s=0.02)
    async with Server(desk.webhooks, msgspec.structs.replace(files, **listen)) as server:
        yield Stand(server, directory, bundle)
    await until(partial(quiet, server.port))


async def unheard(port: int) -> bool:
    """Say whether nobody listens on a port: then it can be bound beside connections that are still open.

    Connecting would tell too, but Python 3.11 leaks a connection that comes while a server closes.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


async def quiet(port: int) -> bool:
    """Say whether both ends of every connection to a port are closed: TLS takes a moment, the loop ends sooner."""
    transports = list(vars(asyncio.get_running_loop())["_transports"].values())
    open_ones = [each for each in transports if vars(each)["_sock"] is not None]
    ends = [each.get_extra_info(end) or ("", 0) for each in open_ones for end in ("sockname", "peername")]
    return all(end[1] != port for end in ends)


async def ask(client: aiohttp.ClientSession, url: str) -> Said:
    """Post the review of a good VMI."""
    async with client.post(f"{url}/mutate/vmis", data=msgspec.json.encode(review(vmi(), VMI))) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        return said(await response.read(), vmi())
