"""`python -m tests.golden NAME STORY...`: record the golden log `NAME-STORY` of each story, by the rules of now.

A story is one of `tests/stories`, or a scene of `tests/golden/scenes.py`.

When a rule changes, raise `RULES_VERSION` and record new logs under a new NAME (`rules-2`); those that stand are
never edited: the new version still reads and replays them, and proves their chain. When the tables of the state change,
raise `STATE_SCHEMA`, and say `python -m tests.golden --states`: the digest under the new schema is added to each log.
Before the first release nothing stands yet: `python -m tests.golden --again` records every log anew in its place.
"""

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from binder.audit import Auditor
from binder.book import Book
from binder.evolve import evolve_epoch
from binder.evolve_adoption import begin
from binder.logbook import Draft, LogReader, LogWriter, append_genesis, open_epoch
from binder.memory_journal import MemoryJournal
from binder.settings import settings_digest
from binder.snapshot import state_digest
from binder.state import STATE_SCHEMA, empty_state
from binder.step import RULES_VERSION, step
from binder.tip import Tip, canonical
from schemas.chain import EventsDigest
from schemas.events import MESSAGE_KINDS, MESSAGE_VERSION
from schemas.frames import Entry, Epoch, Genesis
from schemas.streams import DECISIONS, EVENTS, EVENTS_WATCH
from tests.binder.scene import Scene
from tests.golden.logs import HERE, Told, read, told_of, write
from tests.golden.scenes import SCENES
from tests.stories.language import Story
from tests.stories.test_stories import HERE as STORIES

INPUTS_PER_FRAME = 8
NAME = f"rules-{RULES_VERSION}"


class Recorder:
    """Writes the log that a leader would have written of a scene's inputs."""

    def __init__(self) -> None:
        self.stamp_ns = 1
        self.journal = MemoryJournal(clock=lambda: self.stamp_ns)
        self.book = Book(empty_state())
        self.reader = LogReader(self.journal)
        self.generation, self.leaders = 0, 0

    async def record(self, scene: Scene) -> MemoryJournal:
        """Record every input of a scene, its leaders and its adoptions."""
        epochs = dict(scene.epochs)
        await self._begin(0)
        writer = await self._lead(0)
        waiting: list[int] = []
        for sequence, stamp_ns, body, _ in scene.log:
            if sequence in epochs:
                await self._frame(writer, waiting)
                waiting = []
                if epochs[sequence].generation > max(self.generation, 1):
                    await self._begin(sequence - 1)
                writer = await self._lead(sequence - 1)
            self.stamp_ns = max(stamp_ns, 1)
            await self.journal.append(EVENTS, f"{EVENTS_WATCH}.any", body, message_id=str(sequence))
            waiting.append(sequence)
            if len(waiting) == INPUTS_PER_FRAME:
                await self._frame(writer, waiting)
                waiting = []
        await self._frame(writer, waiting)
        return self.journal

    async def _begin(self, events_last: int) -> None:
        self.generation += 1
        genesis = Genesis("golden", self.generation, "c", "golden", adopts=self.generation > 1, events_last=events_last)
        await append_genesis(self.journal, genesis, self.reader.tip)
        await self._catch_up()
        begin(self.book, genesis)

    async def _lead(self, events_last: int) -> LogWriter:
        self.leaders += 1
        nonce, kinds = f"n{self.leaders}", MESSAGE_KINDS
        epoch = Epoch(
            "golden", self.generation, "leader", nonce, "golden", RULES_VERSION, events_last, (MESSAGE_VERSION,),
            message_kinds=kinds,
        )  # fmt: skip
        sequence = await open_epoch(self.journal, epoch)
        await self._catch_up()
        evolve_epoch(self.book, sequence, epoch)
        return LogWriter(self.journal, self.reader.tip, sequence)

    async def _frame(self, writer: LogWriter, inputs: Sequence[int]) -> None:
        if not inputs:
            return
        digest, entries = EventsDigest(), []
        for sequence in inputs:
            message = await self.journal.get(EVENTS, sequence)
            assert message is not None
            decided = step(self.book, sequence, message.stamp_ns, message.body)
            digest.add(canonical(message))
            entries += [Entry(sequence, decided)] if decided else []
        settings = settings_digest(self.book.state)
        await writer.append(
            Draft(RULES_VERSION, "golden", settings, inputs[0], inputs[-1], digest.hex(), tuple(entries))
        )
        await self._catch_up()

    async def _catch_up(self) -> Tip:
        last = len(self.journal.streams[DECISIONS].messages)
        async for _ in self.reader.follow(until=last):
            pass
        return self.reader.tip


async def record(name: str, story: str) -> None:
    """Record the log of a story, and what it must tell."""
    recorder = Recorder()
    digest = write(f"{name}-{story}", await recorder.record(_scene(story)))
    auditor = Auditor(recorder.journal)
    report = await auditor.verify()
    assert report.whole, f"{story}: {report.finding or report.difference}"
    state = auditor.follower.book.state
    states = {str(STATE_SCHEMA): state_digest(state)}
    must = Told(RULES_VERSION, report.inputs, report.decisions, digest, states)
    told_of(f"{name}-{story}").write_bytes(msgspec.json.format(msgspec.json.encode(must)) + b"\n")


def _scene(story: str) -> Scene:
    if story in SCENES:
        return SCENES[story]()
    told = Story()
    # As the log's: outcomes name decisions by their stamps.
    told.scene.book.state.generation = 1
    for line in (STORIES / f"{story}.story").read_text("utf-8").splitlines():
        if line and not line.startswith(("#", "  ")):
            told.hear(line)
    return told.scene


async def add_states() -> None:
    """Add the digest under the state schema of now to every log."""
    for path in sorted(HERE.glob("*.log.gz")):
        name = path.name.removesuffix(".log.gz")
        must = msgspec.json.decode(told_of(name).read_bytes(), type=Told)
        auditor = Auditor(read(path)[0])
        report = await auditor.verify()
        assert report.whole, f"{name}: {report.finding or report.difference}"
        states = must.states | {str(STATE_SCHEMA): state_digest(auditor.follower.book.state)}
        body = msgspec.json.encode(msgspec.structs.replace(must, states=states))
        told_of(name).write_bytes(msgspec.json.format(body) + b"\n")


async def _main(words: Sequence[str]) -> int:
    if list(words) == ["--states"]:
        await add_states()
        return 0
    if list(words) == ["--again"]:
        words = [NAME, *(path.name.removeprefix(f"{NAME}-").split(".")[0] for path in sorted(HERE.glob("*.log.gz")))]
    if len(words) < 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    for story in words[1:]:
        await record(words[0], story)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(sys.argv[1:])))
