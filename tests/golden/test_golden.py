"""Logs that stand are read, proven and replayed to the state that they always told (T7)."""

from pathlib import Path

import msgspec
import pytest

from binder.audit import Auditor
from binder.snapshot import state_digest
from binder.state import STATE_SCHEMA
from binder.step import RULES_VERSION
from schemas import decisions as d
from schemas.frames import Frame, decode_record
from schemas.streams import DECISIONS
from tests.golden.logs import HERE, Told, read, told_of

LOGS = sorted(HERE.glob("*.log.gz"))
REMEDY = "a rule changed: raise RULES_VERSION and record new logs (see `tests/golden/__main__.py`)"


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.removesuffix(".log.gz"))
async def test_a_log_that_stands_tells_what_it_always_told(path: Path) -> None:
    """T7: chain and inputs are proven, what these rules decided is decided again, and the state is the same."""
    must = msgspec.json.decode(told_of(path.name.removesuffix(".log.gz")).read_bytes(), type=Told)
    journal, digest = read(path)
    assert digest == must.bytes, "a golden log is never edited"

    auditor = Auditor(journal, confirm_seconds=0.05)
    report = await auditor.verify()

    assert report.whole, f"{report.finding or report.difference}: {REMEDY}"
    assert (report.inputs, report.decisions) == (must.inputs, must.decisions)
    assert (report.chain_only == 0) is (must.rules == RULES_VERSION)
    assert str(STATE_SCHEMA) in must.states, "say `python -m tests.golden --states`"
    assert state_digest(auditor.follower.book.state) == must.states[str(STATE_SCHEMA)], REMEDY


async def test_the_logs_that_stand_tell_of_every_kind_of_decision() -> None:
    """What no log tells of could change its meaning unseen."""
    told: dict[type, bool] = {}
    for path in LOGS:
        journal, _ = read(path)
        async for run in journal.read(DECISIONS, 1):
            for message in run:
                record = decode_record(message.body)
                entries = record.entries if isinstance(record, Frame) else ()
                told |= {type(one): True for entry in entries for one in entry.decisions}

    kinds = msgspec.inspect.type_info(d.Decision)
    assert isinstance(kinds, msgspec.inspect.UnionType)
    names = [kind.cls.__name__ for kind in kinds.types if isinstance(kind, msgspec.inspect.StructType)]
    assert sorted(kind.__name__ for kind in told) == sorted(names)
