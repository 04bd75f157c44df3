"""An audit makes decisions of its own rules again, and holds those of other rules against the chain alone (T7)."""

from binder.audit import Auditor, Report
from binder.journal import Message
from binder.logbook import Draft
from binder.memory_journal import MemoryJournal
from binder.settings import settings_digest
from binder.snapshot import state_digest
from binder.state import empty_state
from binder.step import RULES_VERSION
from binder.tip import canonical
from schemas.chain import EventsDigest
from schemas.decisions import ClaimDropped, Decision, Rejected
from schemas.events import Tick, encode_event
from schemas.frames import Entry
from schemas.streams import EVENTS, EVENTS_TICK
from tests.binder.leading import begin

INVENTED = ClaimDropped("tenant-a", "nobody-asked", "u1")


async def audited(rules: int, *decisions: Decision, body: bytes = encode_event(Tick())) -> Report:
    """Audit a log of one input, on which rules of that version are said to have decided this."""
    journal = MemoryJournal()
    writer = await begin(journal)
    await journal.append(EVENTS, EVENTS_TICK, body, message_id="one")
    message = await journal.get(EVENTS, 1)
    assert isinstance(message, Message)
    digest = EventsDigest()
    digest.add(canonical(message))
    entries = (Entry(1, decisions),) if decisions else ()
    await writer.append(Draft(rules, "0", settings_digest(empty_state()), 1, 1, digest.hex(), entries))
    return await Auditor(journal, confirm_seconds=0.1).verify()


async def test_decisions_of_our_own_rules_are_made_again() -> None:
    """What these rules would not say is the difference, with both sides (T7)."""
    report = await audited(RULES_VERSION, INVENTED)

    assert not report.whole
    assert report.difference is not None
    assert (report.difference.logged, report.difference.derived) == ((INVENTED,), ())


async def test_decisions_of_other_rules_are_chain_only() -> None:
    """Another version's decision is applied, counted as such, and held against the chain and the inputs alone (T7)."""
    report = await audited(RULES_VERSION + 1, INVENTED)

    assert report.whole
    assert (report.rederived, report.chain_only, report.inputs) == (0, 1, 1)


async def test_a_malformed_input_is_rejected_again_alike() -> None:
    """The complaint about a malformed input is part of the decision, and made again word for word (T6, T7)."""
    body = b'{"type":"tick","version":"one"}'
    complaint = (await audited(RULES_VERSION + 1, body=body)).finding
    assert complaint == ""
    report = await audited(RULES_VERSION, Rejected("Expected `int`, got `str` - at `$.version`"), body=body)

    assert report.whole, report.difference
    assert report.rederived == 1


def test_a_state_digest_names_its_schema() -> None:
    """Digests of two state schemas never meet (T7)."""
    now, later = empty_state(), empty_state()
    later.schema = now.schema + 1

    assert state_digest(now).startswith(f"{now.schema}:")
    assert state_digest(now) != state_digest(later)
