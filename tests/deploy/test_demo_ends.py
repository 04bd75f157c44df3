"""The demo compares all that was lived with the log: what its binder sent last was lived too."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from typing_extensions import override

from binder.follower import Follower
from binder.journal import Unavailable
from binder.kube import Kube
from binder.memory_journal import MemoryJournal
from binder.snapshot import state_digest
from deploy.demo import NAMESPACE, staged
from deploy.roles import Place
from schemas.events import Tick, encode_event
from schemas.streams import DECISIONS_FRAME, EVENTS, EVENTS_TICK


class Late(MemoryJournal):
    """Once `held`, stores a frame after its sender has ended, as a server does that is slow to write."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.sent = False, asyncio.Event()
        self.landing: asyncio.Task[int] | None = None

    @override
    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        storing = super().append(
            stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
        )
        if not self.held or subject != DECISIONS_FRAME:
            return await storing

        async def late() -> int:
            written = asyncio.Event()
            asyncio.get_running_loop().call_later(0.05, written.set)
            await written.wait()
            return await storing

        self.landing = asyncio.create_task(late())
        self.sent.set()
        return await asyncio.shield(self.landing)


class Nobody:
    """Nobody else asks or answers."""

    connected = True

    async def ask(self, _subject: str, _body: bytes, *, seconds: float) -> bytes:
        """Find nobody."""
        raise Unavailable(f"nobody answers within {seconds:g} s")

    async def answer(
        self, _subject: str, _queue: str, _reply: Callable[[bytes], Awaitable[bytes]]
    ) -> Callable[[], Awaitable[None]]:
        """Be asked nothing."""

        async def stop() -> None:
            """Stop listening."""

        return stop


@pytest.mark.looptime
async def test_what_was_sent_last_is_lived_too() -> None:
    """A frame that is stored after the binder has ended is folded before state and log are held together."""
    journal = Late()

    def place(kube: Kube) -> Place:
        return Place(kube, journal, Nobody(), NAMESPACE, "demo", "test")

    async with staged((), place) as demo:
        journal.held = True
        await journal.append(EVENTS, EVENTS_TICK, encode_event(Tick()), message_id="last")
        await journal.sent.wait()
        before = state_digest(demo.book.state)
    assert journal.landing is not None
    assert journal.landing.done()

    proof = await demo.prove()

    assert proof.live != before
    assert proof.live == state_digest(await Follower(journal).start())
    assert proof.agrees
