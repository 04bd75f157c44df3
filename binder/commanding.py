"""Hands an operator's command to the log and waits for its answer there: decided and logged like everything else."""

import asyncio
import secrets

from binder.journal import Journal
from schemas.decisions import Commanded
from schemas.events import Command, encode_event
from schemas.frames import Epoch, Frame, Genesis, decode_record
from schemas.streams import DECISIONS, EVENTS, EVENTS_COMMAND

LOOK_SECONDS = 0.1
COMMAND_KIND = str(Command.__struct_config__.tag)


class NotAnswered(Exception):
    """The command is stored, or could not be; says which, and what to do."""


async def command(journal: Journal, order: Command, *, seconds: float) -> Commanded:
    """Store a command and return its answer.

    Raises `NotAnswered` where there is no log, or nobody answers in so many seconds: then it is answered once
    a binder leads. `LookupError` for no such stream, `Unclear`, `Unavailable`.
    """
    after = (await journal.info(DECISIONS)).last
    if not after:
        raise NotAnswered("the log has no genesis: `gpubinder adopt --fresh` begins one")
    await _is_read(journal, order, after)
    name = f"command-{secrets.token_hex(8)}"
    sequence = await journal.append(EVENTS, EVENTS_COMMAND, encode_event(order), message_id=name)
    try:
        async with asyncio.timeout(seconds):
            return await _answer(journal, sequence, after)
    except TimeoutError:
        raise NotAnswered(
            f"the command is stored as EVENTS {sequence}, and no binder has answered it within {seconds:g} s: "
            "it is carried out as soon as one leads; don't repeat it"
        ) from None


async def _is_read(journal: Journal, order: Command, last: int) -> None:
    """Raise `NotAnswered` where the newest epoch does not announce that it reads commands (T6)."""
    place = last
    while place:
        message = await journal.get(DECISIONS, place)
        record = decode_record(message.body) if message is not None else None
        if isinstance(record, Epoch):
            if order.version not in record.message_versions or COMMAND_KIND not in record.message_kinds:
                raise NotAnswered(f"the leader ({record.program}) does not read commands: upgrade the binder first")
            return
        # A frame says where its epoch began; between the two there is nothing to look at.
        place = record.epoch if isinstance(record, Frame) else place - 1


async def _answer(journal: Journal, sequence: int, after: int) -> Commanded:
    while True:
        message = await journal.get(DECISIONS, after + 1)
        if message is None:
            await asyncio.sleep(LOOK_SECONDS)
            continue
        after += 1
        record = decode_record(message.body)
        if isinstance(record, Genesis):
            raise NotAnswered(f"a new log began before EVENTS {sequence} was answered: give the command again")
        if isinstance(record, Frame) and record.covers_to >= sequence:
            found = [said for entry in record.entries if entry.cause == sequence for said in entry.decisions]
            for decision in found:
                if isinstance(decision, Commanded):
                    return decision
            raise NotAnswered(f"EVENTS {sequence} was passed over: it was voided, or could not be read")
