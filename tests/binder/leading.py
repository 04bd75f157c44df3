"""Starting a log, leading it and reading it back, for the tests of the log book."""

from secrets import token_hex

from binder.journal import Journal
from binder.logbook import (
    Draft,
    LogReader,
    LogWriter,
    Said,
    append_genesis,
    open_epoch,
)
from binder.tip import START, Tip
from schemas.decisions import Rejected
from schemas.frames import Entry, Epoch, Frame, Genesis
from schemas.streams import DECISIONS
from tests.binder.waiting import patient

GENESIS = Genesis(log_id="log", generation=1, cluster="c", program="0")
QUICK = 0.5
"""A loss is confirmed after this many seconds: nothing here answers from beyond a partition."""


def draft(tip: Tip) -> Draft:
    """Return a frame that decides on the next input."""
    cause = tip.covers_to + 1
    return Draft(1, "0", "settings", cause, cause, "digest", (Entry(cause, (Rejected("spec: missing"),)),))


async def lead(journal: Journal, tip: Tip = START, holder: str = "a") -> LogWriter:
    """Open an epoch and return its writer."""
    reader = LogReader(journal, tip, confirm_seconds=QUICK)
    nonce = token_hex(4)
    epoch = await open_epoch(
        journal, Epoch("log", 1, holder, nonce, program="0", rules=1, events_last=0, message_versions=(1,))
    )
    async for _ in reader.follow(until=epoch):
        pass
    return LogWriter(journal, reader.tip, epoch, confirm_seconds=QUICK)


async def begin(journal: Journal) -> LogWriter:
    """Start a log and lead it."""
    await append_genesis(journal, GENESIS)
    return await lead(journal)


async def log(journal: Journal) -> list[Said]:
    """Read the whole log, checked."""
    info = await patient(lambda: journal.info(DECISIONS))
    return [said async for said in LogReader(journal).follow(until=info.last)]


async def covered(journal: Journal) -> list[int]:
    """Return the inputs that the log's frames decided on; the reader holds that none is missing or repeated."""
    return [said.record.covers_to for said in await log(journal) if isinstance(said.record, Frame)]
