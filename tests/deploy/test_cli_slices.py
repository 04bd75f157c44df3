"""`gpubinder slice` and `rerun`: a stretch of the log leaves the house and proves itself elsewhere."""

import asyncio
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from binder.slices import NotASlice, cut, load
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.command import called, gpubinder
from tests.deploy.logs import Kept

Lines = list[dict[str, object]]


@pytest.fixture
def data(demo_log: Kept, tmp_path: Path) -> Path:
    """The demo's log, for this test alone."""
    return demo_log.copy(tmp_path / "log")


@pytest.fixture
def stretch(demo_log: Kept, tmp_path: Path) -> Path:
    """A slice from the middle of the demo's log to its end."""
    asyncio.run(cut(demo_log.in_memory(), 60, 10_000, tmp_path / "cut.slice"))
    return tmp_path / "cut.slice"


def _edit(file: Path, change: Callable[[Lines], None]) -> None:
    lines: Lines = [msgspec.json.decode(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    change(lines)
    file.write_bytes(gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines)))


def _placing(lines: Lines) -> dict[str, object]:
    # The first record stands before the stretch, and is there for its hash alone.
    _, *decided = [line for line in lines if line.get("stream") == DECISIONS]
    return next(line for line in decided if "set-placed" in str(line["body"]))


def test_a_slice_is_cut_and_run_again_elsewhere(data: Path, tmp_path: Path) -> None:
    """A VM's stretch is one file; it is decided again without NATS and cluster, from the state that replay shows."""
    file = tmp_path / "batch.slice"
    made = gpubinder("slice", "--vm", "tenant-umbra/batch", "-o", file, "--json", "--data", data)
    about = made.json
    before = gpubinder("replay", "--to", about["decisions_from"] - 1, "--json", "--data", data).json

    ran = gpubinder("rerun", file, "--json")

    assert made.code == ran.code == 0, ran.err
    assert ran.json["whole"] is True
    assert ran.json["rederived"] > 0
    assert ran.json["inputs"] == about["events_to"] - about["events_from"] + 1
    assert ran.json["state_before"] == about["state"] == before["digest"]


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 10_000), (40, 60), (100, 10_000)])
def test_any_stretch_can_be_run_again(demo_log: Kept, tmp_path: Path, first: int, last: int) -> None:
    """Wherever a slice begins and ends, it decides what the log says, as does the whole log."""
    head = asyncio.run(cut(demo_log.in_memory(), first, last, tmp_path / "cut.slice"))

    ran = called("rerun", tmp_path / "cut.slice", "--json")

    assert ran.code == 0, ran.out
    assert head.events_from <= first
    assert head.events_to >= min(last, len(demo_log.messages[EVENTS]))


async def test_a_stretch_that_the_log_does_not_cover_is_refused(demo_log: Kept, tmp_path: Path) -> None:
    """A slice of what was never decided on is no slice."""
    with pytest.raises(LookupError, match="the log decided on EVENTS up to"):
        await cut(demo_log.in_memory(), 10_000, 10_001, tmp_path / "cut.slice")


def test_an_edited_decision_is_shown_beside_what_the_rules_decide(stretch: Path) -> None:
    """Another node in a logged placement: the difference, side by side, and the inputs behind it.

    It ends with 3, because the chain is broken as well.
    """
    nodes: list[str] = []

    def move(lines: Lines) -> None:
        line = _placing(lines)
        body = str(line["body"])
        there = re.search(r'"node":"(gpu-[ab][12])"', body)
        assert there is not None
        nodes.extend([there[1], "gpu-b2" if there[1] == "gpu-a1" else "gpu-a1"])
        line["body"] = body.replace(nodes[0], nodes[1])

    _edit(stretch, move)

    ran = called("rerun", stretch)

    assert ran.code == 3
    assert "is the first input that is decided otherwise" in ran.out
    told = ran.out[ran.out.index("logged") :]
    logged, derived = told.split("these rules")[:2]
    assert f"is placed on {nodes[1]}" in logged
    assert f"is placed on {nodes[0]}" in derived
    assert "behind it" in ran.out
    assert "is not the hash of what stands before it" in ran.out


def test_the_last_decision_edited_is_a_difference_alone(demo_log: Kept, tmp_path: Path) -> None:
    """The end of a slice has no frame over it: only the rules find what was changed there, and it ends with 4."""
    deciding = next(m for m in reversed(demo_log.messages[DECISIONS]) if b'"entries"' in m.body)
    covers = msgspec.json.decode(deciding.body)["covers_to"]
    file = tmp_path / "cut.slice"
    asyncio.run(cut(demo_log.in_memory(), covers - 5, covers, file))

    def forget(lines: Lines) -> None:
        line = [one for one in lines if one.get("stream") == DECISIONS][-1]
        frame = msgspec.json.decode(str(line["body"]))
        del frame["entries"]
        line["body"] = msgspec.json.encode(frame).decode()

    _edit(file, forget)

    ran = called("rerun", file, "--json")

    assert ran.code == 4, ran.out
    assert ran.json["difference"]["logged"] == []
    assert ran.json["difference"]["derived"]
    assert ran.json["behind"][-1]["sequence"] == ran.json["difference"]["sequence"]


def _flip(lines: Lines) -> None:
    line = next(line for line in lines if line.get("stream") == EVENTS)
    line["body"] = str(line["body"]).replace('"type"', '"typo"', 1)


def _drop(lines: Lines) -> None:
    lines.remove([line for line in lines if line.get("stream") == EVENTS][3])


def _swap(lines: Lines) -> None:
    one, other = [line for line in lines if line.get("stream") == EVENTS][3:5]
    one["body"], other["body"] = other["body"], one["body"]


def _insert(lines: Lines) -> None:
    """One more input, and everything after it one further on."""
    place = lines.index([line for line in lines if line.get("stream") == EVENTS][3])
    for line in lines[place:]:
        line["sequence"] = int(str(line["sequence"])) + 1
    lines.insert(place, {**lines[place], "sequence": int(str(lines[place]["sequence"])) - 1})


def _shorten(lines: Lines) -> None:
    """Take the last frame away, as if the stretch ended earlier."""
    lines.remove([line for line in lines if line.get("stream") == DECISIONS][-1])


def _other_tip(lines: Lines) -> None:
    """Another chain before the stretch."""
    tip = lines[0]["tip"]
    assert isinstance(tip, dict)
    tip["hash"] = tip["before"]


@pytest.mark.parametrize(
    "change", [_flip, _drop, _swap, _insert, _shorten, _other_tip], ids=lambda change: change.__name__[1:]
)
def test_a_slice_cannot_be_changed_unseen(stretch: Path, change: Callable[[Lines], None]) -> None:
    """T1: what verify finds in a log, rerun finds in a slice."""
    _edit(stretch, change)

    ran = called("rerun", stretch, "--json")

    assert ran.code == 3, ran.out
    assert ran.json["finding"]


def test_another_state_before_the_stretch_shows_in_its_digest(stretch: Path) -> None:
    """Nothing in the file vouches for the state before it: its digest is printed, to be held against replay's."""
    honest = called("rerun", stretch, "--json").json["state_before"]

    def age(lines: Lines) -> None:
        state = lines[0]["state"]
        assert isinstance(state, dict)
        state["now_ns"] = 1

    _edit(stretch, age)

    assert called("rerun", stretch, "--json").json["state_before"] != honest


def test_step_by_step_each_input_is_told(stretch: Path) -> None:
    """`--step` tells each input and what was decided on it, in order."""
    ran = called("rerun", "--step", stretch)

    told = ran.out.splitlines()
    assert ran.code == 0, ran.err
    placed = next(place for place, line in enumerate(told) if "tenant-umbra/batch is placed on" in line)
    waits = next(place for place, line in enumerate(told) if "tenant-umbra/batch waits, NoRoom" in line)
    assert waits < placed


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"no json\n", mtime=0), gzip.compress(b"{}\n", mtime=0)],
    ids=["empty", "no gzip", "no json", "no head"],
)
def test_what_is_no_slice_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    """A file that is no slice ends with 3 and its name, not with a traceback."""
    file = tmp_path / "no.slice"
    file.write_bytes(content)

    ran = called("rerun", file)

    assert ran.code == 3
    assert f"{file}: not a slice" in ran.err
    assert "Traceback" not in ran.err


def test_a_slice_cut_short_is_refused(stretch: Path) -> None:
    """Half a file is no slice."""
    stretch.write_bytes(stretch.read_bytes()[:-40])

    with pytest.raises(NotASlice, match="cut short"):
        load(stretch)


@pytest.mark.parametrize(
    "words",
    [(), ("--from", "3"), ("--from", "9", "--to", "3"), ("--around", "3", "--vm", "a/b"), ("--from", "0", "--to", "1")],
)
def test_one_way_to_choose_a_stretch(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Bounds, a middle or a VM: none, half of one or two of them are wrong usage."""
    ran = called("slice", "-o", tmp_path / "x", *words)

    assert ran.code == 2
    assert "--from" in ran.err


def test_a_vm_that_no_input_names(data: Path, tmp_path: Path) -> None:
    """A stretch of a VM nobody heard of is refused by its name."""
    ran = gpubinder("slice", "--vm", "tenant-a/nobody", "-o", tmp_path / "x", "--data", data)

    assert ran.code == 1
    assert "tenant-a/nobody" in ran.err
