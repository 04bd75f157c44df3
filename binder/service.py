"""The binder as a process: a warm standby that follows the log, and the one leader that writes it.

Leading is a straight loop: take the inputs that wait, fold and decide each, append one frame, go on.
Nothing is answered or projected before its frame is durable: everyone reads it from the log.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from binder.anchor import Anchor, prove_anchor
from binder.company import Company
from binder.decide import answer_dry, is_left_over
from binder.evolve import is_dirty, may_place
from binder.follower import Follower
from binder.journal import Journal, Message, Unavailable, Unclear
from binder.logbook import CONFIRM_SECONDS, Draft, Fenced, LogWriter, open_epoch
from binder.newest import prove_inputs
from binder.settings import settings_digest
from binder.shown import Shown, prove_stamps
from binder.state import State
from binder.step import RULES_VERSION, step
from binder.tip import Tip, canonical
from binder.together import together
from binder.written import Witness, Written, unwatched
from schemas.answers import Answer
from schemas.chain import EventsDigest
from schemas.events import ANNOUNCED_VERSIONS, MESSAGE_KINDS, Continue, Tick, decode_event, encode_event
from schemas.frames import Entry, Epoch, Void, entry_bytes
from schemas.names import SETTINGS_CONFIGMAP
from schemas.streams import DECISIONS, EVENTS, EVENTS_CONTINUE, EVENTS_TICK

INPUTS_PER_FRAME_MAX = 200
DECISIONS_PER_FRAME_MAX = 500
FRAME_BYTES_MAX = 1_000_000
"""A frame that grew beyond this takes no further input: the last one may add half as much, and one long set (T5)."""

SNAPSHOT_EVERY_INPUTS = 20_000
TICK_SECONDS = 5.0

_log = structlog.get_logger(__name__)


class Snapshots(Protocol):
    """Where states are kept with the tip they were folded to (`binder.snapshots.StateSnapshots`)."""

    async def newest(self) -> tuple[State, Tip] | None:
        """Return the newest state kept, None where there is none."""
        ...

    async def keep(self, state: State, tip: Tip) -> None:
        """Keep a state."""
        ...


class Overruled(Exception):
    """An operator skipped an input while a frame was on its way: fold again from the log, which says so (T6)."""


def _overruled(void: Void) -> None:
    raise Overruled(f"EVENTS {void.sequence} is skipped by {void.who}")


class Binder:
    """`run` follows for ever; `lead` is called while the lease is held. One instance a process.

    `shown`: reads what objects show of the log (`binder.shown.in_status`); without it they are not asked.
    `witness` is told each frame that this process writes, once it is durable.
    """

    def __init__(
        self,
        journal: Journal,
        anchor: Anchor,
        snapshots: Snapshots,
        *,
        identity: str,
        program: str,
        shown: Callable[[], Awaitable[Shown]] | None = None,
        witness: Witness = unwatched,
    ) -> None:
        self._journal = journal
        self._witness = witness
        self._anchor = anchor
        self._shown = shown
        self._identity = identity
        self._program = program
        self._snapshots = snapshots
        self._nonce, self._proven = "", False
        self._handover: asyncio.Future[Follower] | None = None
        self._handback = asyncio.Event()
        self.follower: Follower | None = None
        self.leading = False

    async def run(self) -> None:
        """Follow the log for ever. Raises what must stop the program: a broken or lost log, an unknown message."""
        while True:
            follower = Follower(self._journal, *(await self._snapshots.newest() or ()))
            self.follower = follower
            async for told in follower.steps():
                handover = self._handover
                if isinstance(told.said.record, Epoch) and told.said.record.nonce == self._nonce and handover:
                    # Our own epoch: the leader writes on from here, with this very state.
                    self._handover, self._nonce = None, ""
                    if not handover.done():
                        self._handback.clear()
                        handover.set_result(follower)
                        await self._handback.wait()
                        break
            # What was folded and not written must not stay: begin again from what the log says.
            await follower.close()

    async def lead(self) -> None:
        """Open epochs and write frames until cancelled. Raises `NotOurs` where the log is not the anchored one."""
        while True:
            await self._prove_identity()
            follower = await self._take_over()
            try:
                self.leading = True
                await self._lead(follower)
            except (Fenced, Overruled) as fence:
                # We still hold the lease, or we would have been cancelled: open another epoch (T2).
                _log.warning("fenced", by=str(fence))
            finally:
                self.leading = False
                self._handback.set()

    async def _prove_identity(self) -> None:
        anchor = await self._anchor.read()
        follower = self.follower
        while anchor is not None and (follower is None or follower.tip.sequence < anchor.sequence):
            # The standby is still reading up to the anchor; a log that ends before it shows in its info.
            last = (await self._journal.info(DECISIONS)).last
            if last < anchor.sequence:
                break
            await asyncio.sleep(0.05)
            follower = self.follower
        await prove_anchor(anchor, self._tip(), self._journal)
        if not self._proven:
            # Once: of a tail that this process follows it would see the loss.
            await prove_inputs(self._journal, self._tip, CONFIRM_SECONDS)
            if self._shown is not None:
                await prove_stamps(await self._shown(), self._tip, self._journal)
            self._proven = True

    def _tip(self) -> Tip:
        return self.follower.tip if self.follower else Tip()

    async def _take_over(self) -> Follower:
        """Append our epoch's record and wait until the standby has folded the log up to it."""
        follower = self.follower
        if follower is None:
            raise RuntimeError("the standby does not run")
        self._nonce = secrets.token_hex(8)
        # Kept here too: the standby may fold our record, and hand over, before its append is acknowledged.
        handover: asyncio.Future[Follower] = asyncio.get_running_loop().create_future()
        self._handover = handover
        events_last = (await self._journal.info(EVENTS)).last
        tip = follower.tip
        record = Epoch(
            tip.log_id,
            tip.generation,
            self._identity,
            self._nonce,
            self._program,
            RULES_VERSION,
            events_last,
            ANNOUNCED_VERSIONS,
            message_kinds=MESSAGE_KINDS,
        )
        try:
            epoch = await open_epoch(self._journal, record)
            _log.info("epoch opened", epoch=epoch, identity=self._identity)
            return await handover
        except BaseException:
            # The lease was lost meanwhile, and the record may still land: nobody takes what is handed over then.
            handover.cancel()
            self._handback.set()
            raise

    async def _lead(self, follower: Follower) -> None:
        writer = LogWriter(self._journal, follower.tip, follower.book.state.epoch, heed=_overruled)
        # None of them ends by itself: frames without time or anchor are as wrong as no frames.
        try:
            await together(
                lambda: self._write_frames(follower, writer),
                lambda: self._tick(follower),
                lambda: self._anchor.keep(lambda: writer.tip),
            )
        finally:
            await follower.close()

    async def _write_frames(self, follower: Follower, writer: LogWriter) -> None:
        book, since_snapshot, told, loop = follower.book, 0, tuple[str, ...](), asyncio.get_running_loop()
        if is_dirty(book.state):
            # What the last leader's bound left over (T5).
            await self._publish_continue(writer)
        company = Company(follower, INPUTS_PER_FRAME_MAX)
        while True:
            # 1. What waits, up to a frame's worth; it is seldom alone where much comes in.
            inputs = await company.inputs()
            # 2. Fold and decide, one input at a time.
            began = loop.time()
            draft, taken = _decide(follower, inputs, self._program)
            decided = loop.time()
            follower.give_back(inputs[taken:])
            # 3. Durable before anyone hears of it.
            await writer.append(draft)
            self._witness(
                Written(writer.tip.sequence, inputs[:taken], draft.entries, decided - began, loop.time() - decided)
            )
            # 4. Left-overs of a bounded input go on as an input of their own.
            if is_left_over(book):
                await self._publish_continue(writer)
            told = _complain(book.settings.problems, told)
            since_snapshot += taken
            if since_snapshot >= SNAPSHOT_EVERY_INPUTS:
                since_snapshot = 0
                await self._snapshots.keep(book.state, writer.tip)

    async def _publish_continue(self, writer: LogWriter) -> None:
        name = f"{writer.tip.log_id}/continue/{writer.tip.sequence}"
        await self._publish(EVENTS_CONTINUE, encode_event(Continue()), name)

    async def _publish(self, subject: str, body: bytes, name: str) -> None:
        try:
            await self._journal.append(EVENTS, subject, body, message_id=name)
        except (Unclear, Unavailable) as trouble:
            # A later input or tick goes on with what is dirty; nothing is lost but a moment.
            _log.warning("not published", subject=subject, why=str(trouble))

    async def _tick(self, follower: Follower) -> None:
        """Publish the time while a deadline exists or a unit is held (T9)."""
        count = 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            state = follower.book.state
            held = state.sets or state.holdings or state.troubles
            if (
                held
                or follower.book.deadlines
                or follower.book.licence_dues
                or follower.book.skips.due
                or is_dirty(state)
            ):
                count += 1
                await self._publish(EVENTS_TICK, encode_event(Tick()), f"tick/{state.epoch}/{count}")

    def answer_dry_run(self, body: bytes) -> Answer | None:
        """Answer an admission request off the streams, booking nothing (T19); None while the state is cold."""
        follower = self.follower
        if follower is None or not may_place(follower.book.state):
            return None
        # What was read for the request is not folded: a dry run leaves no trace, and may know a moment less.
        return answer_dry(follower.book, decode_event(body))


def _complain(problems: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """Name the settings that can't be read, once per change: whoever wrote them believes that they hold."""
    if problems != told:
        for problem in problems:
            _log.warning("a setting can't be read; its default holds", configmap=SETTINGS_CONFIGMAP, problem=problem)
    return problems


def _decide(follower: Follower, inputs: list[Message], program: str) -> tuple[Draft, int]:
    """Fold and decide inputs in order; stop early where the frame grows long. Returns how many were taken."""
    book = follower.book
    digest, entries, decided_count, size, taken = EventsDigest(), [], 0, 0, 0
    for message in inputs:
        decided = step(book, message.sequence, message.stamp_ns, message.body)
        digest.add(canonical(message))
        taken += 1
        if decided:
            entry = Entry(message.sequence, decided)
            entries.append(entry)
            decided_count += len(decided)
            size += entry_bytes(entry)
            if decided_count >= DECISIONS_PER_FRAME_MAX or size >= FRAME_BYTES_MAX:
                break
    draft = Draft(
        RULES_VERSION,
        program,
        settings_digest(book.state),
        inputs[0].sequence,
        inputs[taken - 1].sequence,
        digest.hex(),
        tuple(entries),
    )
    return draft, taken
