"""Who may be connected: a bounded number, and one more takes the place of whoever has been there longest.

Anybody in the cluster may connect, and a connection over TLS costs a quarter of a megabyte before its first word
(asyncio's own buffer): as many as come would take the memory that answers are given from.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

HANDSHAKE_S: Final = 5.0
BACKLOG: Final = 128
LAST_S: Final = 1.0
PAUSE_S: Final = 0.005
"""How long is waited for room, and after an accept that failed: out of files, or a client that went again."""


class House(msgspec.Struct, frozen=True):
    """What is behind the door: `guest` makes the protocol of one more, `count` is how many there are.

    `idle`: of those the ones that nothing is answered for, the oldest first.
    """

    guest: Callable[[], asyncio.Protocol]
    count: Callable[[], int]
    idle: Callable[[], Sequence[asyncio.Transport]]


class Door:
    """Lets at most `most` in at once, those in their handshake counted; made by `open`, ended by `close`.

    Whoever is being answered stays. Of the others one goes from the side, handshakes or idle connections, that has
    more: so neither keeps the API server out for long.
    """

    def __init__(self, listener: socket.socket, house: House, context: ssl.SSLContext | None, most: int) -> None:
        self._listener, self._house, self._context, self._most = listener, house, context, most
        self._entering: dict[asyncio.Task[None], bool] = {}
        self._accepting = asyncio.create_task(self._accept())

    @classmethod
    def open(cls, host: str, port: int, house: House, context: ssl.SSLContext | None, most: int) -> "Door":
        """Listen. Raises `OSError` where the address is taken."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        listener.settimeout(0)
        return cls(listener, house, context, most)

    @property
    def port(self) -> int:
        """Where is listened."""
        return int(self._listener.getsockname()[1])

    async def close(self) -> None:
        """Let nobody in any more; who is in stays, and who is about to come in has a moment."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        if self._entering:
            _, late = await asyncio.wait(self._entering, timeout=LAST_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        # Only now: the loop still knew its number.
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room()
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            task = asyncio.create_task(self._let_in(connection))
            self._entering[task] = True
            task.add_done_callback(self._entering.pop)

    async def _room(self) -> None:
        """Wait until one more may come, and see to it."""
        while len(self._entering) + self._house.count() >= self._most:
            idle = self._house.idle()
            if len(self._entering) >= len(idle):
                for task in list(self._entering)[:1]:
                    task.cancel()
            else:
                # Not closed: that would wait for the other side to agree.
                idle[0].abort()
            await asyncio.sleep(PAUSE_S)

    async def _let_in(self, connection: socket.socket) -> None:
        loop, patience = asyncio.get_running_loop(), HANDSHAKE_S if self._context is not None else None
        try:
            await loop.connect_accepted_socket(
                self._house.guest, connection, ssl=self._context, ssl_handshake_timeout=patience
            )
        except (OSError, TimeoutError):
            # Whoever can't be spoken with is not let in, and knows why itself.
            connection.close()
