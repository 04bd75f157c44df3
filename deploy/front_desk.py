"""The front desk of a process: it listens, is made known to the API server, and ends without dropping a review."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from binder.together import until
from deploy.front_door import Door, FrontDoor
from deploy.roles import Place
from deploy.standing_rules import install_policies, keep_settings
from webhooks.metrics import Metrics
from webhooks.server import Listen, Server


class PortTaken(Exception):
    """A port can't be listened on; names it, and the option that chooses another."""

    def __init__(self, port: int, option: str, error: OSError) -> None:
        super().__init__(f"port {port}: {error.strerror or error}; choose another with {option}")


class FrontDesk:
    """The webhooks of one process. `linger_s`: how long they still take reviews once they are no longer ready."""

    def __init__(self, place: Place, door: Door, metrics: Metrics, *, host: str, port: int, linger_s: float) -> None:
        self._place, self._door = place, door
        self._host, self._port, self._linger_s = host, port, linger_s
        self._front = FrontDoor(place.kube, place.namespace, door)
        self._server: Server | None = None
        self._closing = asyncio.Event()
        self.webhooks = place.webhooks(metrics)

    @property
    def troubles(self) -> list[str]:
        """Name what keeps the API server from being sent here."""
        return self._server.troubles if self._server is not None else ["webhooks: do not listen yet"]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen, then be known. Raises `PortTaken`, `UnusableCertificate`, `ApiError`."""
        await self._front.begin()
        listen = Listen(
            *self._door.files, self._door.client_ca, host=self._host, port=self._port, linger_s=self._linger_s
        )
        server = Server(self.webhooks, listen)
        try:
            await server.start()
        except OSError as error:
            await server.stop()
            raise PortTaken(self._port, "--webhook-port", error) from None
        self._server = server
        try:
            if self._door.at:
                # First the settings that say who we are: policies and webhooks look there.
                await install_policies(self._place.kube, self._place.namespace)
            await self._front.tell()
            yield
        finally:
            await self.close()

    async def keep_known(self) -> None:
        """Look after the certificates, and what the API server knows of us, until the desk closes; never ends.

        Who drains may be the last of us, and must not write again what a removal took away.
        """
        await until(self._closing, self._front.keep)

    async def keep_settings(self) -> None:
        """Look after the settings that policies need, until the desk closes; never ends."""
        await until(self._closing, lambda: keep_settings(self._place.kube, self._place.namespace))

    async def close(self) -> None:
        """Take no more reviews, and answer those that were taken. Closed twice is closed."""
        self._closing.set()
        if self._server is not None:
            await self._server.stop()
