"""A real log to look at and to tamper with: written once by the demo, copied for each test that asks."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from binder.access import Access
from binder.jetstream import connect
from binder.journal import Message
from binder.memory_journal import MemoryJournal
from binder.stream_journal import JetStreamJournal
from deploy.local import LocalNats
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.command import Ran, gpubinder


class Kept:
    """The directory of a demo's log, what the demo told in JSON, and the messages of both streams."""

    def __init__(self, directory: Path, told: Ran, messages: dict[str, list[Message]]) -> None:
        self.directory = directory
        self.told = told
        self.messages = messages

    def in_memory(self) -> MemoryJournal:
        """Return the streams as they were stored, open to be changed behind everyone's back."""
        memory = MemoryJournal()
        for stream, messages in self.messages.items():
            memory.streams[stream].messages = list(messages)
            memory.streams[stream].last = messages[-1].sequence
        return memory

    def copy(self, to: Path) -> Path:
        """Return a copy that a test may do anything with."""
        shutil.copytree(self.directory, to)
        return to


@pytest.fixture(scope="session")
def demo_log(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The example cluster's demo, its log kept."""
    directory = tmp_path_factory.mktemp("demo") / "log"
    told = gpubinder("demo", "--json", "--keep", directory)
    assert told.code == 0, told.err
    return Kept(directory, told, asyncio.run(_read(directory)))


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[JetStreamJournal]:
    """A journal on a nats-server over the directory."""
    async with LocalNats(directory) as server:
        connection = await connect(Access((server.url,)), lambda _why: None)
        try:
            yield JetStreamJournal(connection)
        finally:
            await connection.close()


async def _read(directory: Path) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    async with served(directory) as journal:
        for stream in (EVENTS, DECISIONS):
            last = (await journal.info(stream)).last
            found[stream] = [message async for run in journal.read(stream, 1, until=last) for message in run]
    return found


def changed(message: Message, **fields: object) -> Message:
    """Return a message with some fields changed."""
    return msgspec.structs.replace(message, **fields)
