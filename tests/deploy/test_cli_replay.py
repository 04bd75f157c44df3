"""`gpubinder replay` and `explain`: the log tells how things stand, and how they stood."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from binder import explain as explaining
from binder.follower import Follower
from binder.rewind import Where, stand_at
from binder.snapshot import state_digest
from schemas.decisions import SetPlaced, SetWaits
from schemas.frames import Frame, decode_record
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.command import called, gpubinder
from tests.deploy.logs import Kept

BATCH = "tenant-umbra/batch"


@pytest.fixture
def data(demo_log: Kept, tmp_path: Path) -> Path:
    """The demo's log, for this test alone."""
    return demo_log.copy(tmp_path / "log")


def _frames(log: Kept) -> list[tuple[int, Frame]]:
    records = [(message.sequence, decode_record(message.body)) for message in log.messages[DECISIONS]]
    return [(sequence, record) for sequence, record in records if isinstance(record, Frame)]


def _decided(log: Kept, kind: type[SetPlaced | SetWaits], vm: str) -> tuple[int, int]:
    """Return the DECISIONS sequence and the cause of the first decision of a kind about a VM."""
    return next(
        (sequence, entry.cause)
        for sequence, frame in _frames(log)
        for entry in frame.entries
        for decision in entry.decisions
        if isinstance(decision, kind) and f"{decision.vmi.namespace}/{decision.vmi.name}" == vm
    )


def test_replay_shows_who_holds_what(demo_log: Kept, data: Path) -> None:
    """The state at the log's end: each VM with its units and node or reason, each node with what is free."""
    ran = gpubinder("replay", "--data", data)

    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert ran.code == 0, ran.err
    assert any(line.startswith(f"{BATCH} 2 x l40s-24c gpu-a2 pinned") for line in lines)
    assert any(line.startswith("tenant-umbra/archive 1 x l40s-24c - VolumeOnOtherNode") for line in lines)
    assert "gpu-b1 l40s 1 4" in lines
    assert demo_log.told.json["state"]["replayed"] in ran.out


def test_replay_for_machines_agrees_with_the_demo(demo_log: Kept, data: Path) -> None:
    """The digest of the whole state, replayed by another process, is the one that was lived."""
    found = gpubinder("replay", "--json", "--data", data).json

    assert found["digest"] == demo_log.told.json["state"]["live"]
    assert found["decisions"] == demo_log.told.json["log"]["log_through"]
    assert sorted(found["state"]["sets"])


async def test_replay_stops_after_a_decision(demo_log: Kept) -> None:
    """Before a VM's placement it waits, after it it has its node: DECISIONS sequence by DECISIONS sequence."""
    placed, _ = _decided(demo_log, SetPlaced, BATCH)

    before = await stand_at(demo_log.in_memory(), Where(decision=placed - 1))
    after = await stand_at(demo_log.in_memory(), Where(decision=placed))

    assert explaining.explain(before.book, *BATCH.split("/")).phase == "Waiting"
    assert explaining.explain(after.book, *BATCH.split("/")).node == "gpu-a2"
    assert (before.tip.sequence, after.tip.sequence) == (placed - 1, placed)


async def test_replay_stops_within_a_frame(demo_log: Kept) -> None:
    """After the EVENTS message before the deciding one nothing is decided yet, whatever its frame covers."""
    _, cause = _decided(demo_log, SetPlaced, BATCH)

    before = await stand_at(demo_log.in_memory(), Where(event=cause - 1))
    after = await stand_at(demo_log.in_memory(), Where(event=cause))

    assert before.book.state.events_seq == cause - 1
    assert explaining.explain(before.book, *BATCH.split("/")).phase == "Waiting"
    assert explaining.explain(after.book, *BATCH.split("/")).node == "gpu-a2"


async def test_replay_stops_at_a_time(demo_log: Kept) -> None:
    """Every input stamped up to the time is folded, and none stamped later."""
    middle = demo_log.messages[EVENTS][len(demo_log.messages[EVENTS]) // 2]

    found = await stand_at(demo_log.in_memory(), Where(stamp_ns=middle.stamp_ns))

    assert found.book.state.events_seq == middle.sequence


async def test_a_snapshot_changes_nothing(demo_log: Kept) -> None:
    """Going on from a snapshot leads to the same state as the log from its start; one beyond the place is no use."""
    journal = demo_log.in_memory()
    follower = Follower(journal)
    last = demo_log.messages[DECISIONS][-1].sequence
    async for _ in follower.steps(until=last // 2):
        pass
    kept = (follower.book.state, follower.tip)

    far = await stand_at(demo_log.in_memory(), Where(), kept)
    near = await stand_at(demo_log.in_memory(), Where(decision=last // 2 - 5), kept)

    assert state_digest(far.book.state) == demo_log.told.json["state"]["live"]
    assert near.tip.sequence == last // 2 - 5


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--to", "100000"), "there is no 100000"),
        (("--to-event", "100000"), "100000 is not decided on yet"),
    ],
)
def test_a_place_beyond_the_log_is_refused(data: Path, words: tuple[str, ...], why: str) -> None:
    """Where the log does not reach, the place is named, and the end of the log."""
    ran = gpubinder("replay", *words, "--data", data)

    assert ran.code == 1
    assert why in ran.err


@pytest.mark.parametrize(
    "words", [("replay", "--to", "1", "--to-event", "1"), ("replay", "--to-time", "noon"), ("explain", "no-namespace")]
)
def test_wrong_words_are_wrong_usage(words: tuple[str, ...]) -> None:
    """Two places at once, no time, no VM: exit code 2 and a sentence."""
    ran = called(*words)

    assert ran.code == 2
    assert ran.err


def test_a_time_without_a_zone_is_utc(demo_log: Kept, data: Path) -> None:
    """`--to-time` takes what ISO 8601 takes; a second before the first input nothing was there."""
    first = demo_log.messages[EVENTS][0].stamp_ns // 1_000_000_000
    before = datetime.fromtimestamp(first - 1, UTC).replace(tzinfo=None).isoformat()

    found = gpubinder("replay", "--to-time", before, "--json", "--data", data).json

    assert found["events"] == 0


def test_explain_says_why_it_waited_then(demo_log: Kept, data: Path) -> None:
    """A VM that has its place now is explained as it waited: reason, place in line, each node with what it lacked."""
    waited, _ = _decided(demo_log, SetWaits, BATCH)

    ran = gpubinder("explain", BATCH, "--at", str(waited), "--data", data)

    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert ran.code == 0, ran.err
    assert lines[0].startswith(f"{BATCH} waits: NoRoom, number 1 in line")
    assert any(line.startswith("gpu-a2 1 of 4 NoRoom 1 of 2 ") for line in lines)
    assert any(line.startswith("gpu-a1 0 of 4 NoRoom 0 of 2 ") for line in lines)
    assert "3 more offer none of these devices" in lines


@pytest.mark.parametrize(
    ("vm", "phase", "reason"),
    [
        ("tenant-umbra/batch", "Placed", None),
        ("tenant-umbra/archive", "Waiting", "VolumeOnOtherNode"),
        ("tenant-acme/research", "Waiting", "TaintNotTolerated"),
        ("tenant-acme/spare", "NotStarted", None),
    ],
)
async def test_explain_tells_each_standing(demo_log: Kept, vm: str, phase: str, reason: str | None) -> None:
    """Placed, waiting for a disk, waiting behind a taint, or not started."""
    stand = await stand_at(demo_log.in_memory(), Where())

    found = explaining.explain(stand.book, *vm.split("/"))

    assert (found.phase, found.reason) == (phase, reason)


def test_explain_of_a_stranger_is_no_success(data: Path) -> None:
    """A VM that the log does not know is named in the refusal, with the place that was looked at."""
    ran = gpubinder("explain", "tenant-a/nobody", "--data", data)

    assert ran.code == 1
    assert (
        "tenant-a/nobody: no VM or VMI with a GPU reference, and no held claim, has this name, at DECISIONS" in ran.err
    )


def test_explain_for_machines(data: Path) -> None:
    """JSON holds the explanation with the place it was made at."""
    found = gpubinder("explain", "tenant-acme/research", "--json", "--data", data).json

    assert found["explanation"]["reason"] == "TaintNotTolerated"
    tainted = next(node for node in found["explanation"]["nodes"] if node["node"] == "gpu-c1")
    assert "dedicated=research:NoSchedule" in tainted["detail"]


def test_no_log_there(tmp_path: Path) -> None:
    """An absent directory is not made into an empty log: the ways to name the right one are told."""
    ran = gpubinder("replay", "--data", tmp_path / "none")

    assert ran.code == 1
    assert "--nats" in ran.err
    assert not (tmp_path / "none").exists()
