"""A waiting claim shows its place in line: the first twenty, beside the decision, on change alone."""

import asyncio

import msgspec
import pytest

from binder.book import Book
from binder.explain import explain
from binder.kube import ApiError, PatchKind
from ingest.classes import read_claim
from projector.paced import SECONDS_BETWEEN
from projector.positions import FIRST_IN_LINE, QueuePositions, positions
from schemas.crds import CLAIM_COLUMNS
from schemas.kinds import GPU_CLAIM
from schemas.reasons import Wait
from tests.projector.conftest import new_scene
from tests.projector.faults import Refusal
from tests.projector.held import status
from tests.projector.scene import NODE, Scene, stamp, time_passes
from tests.stories.language import Story


def told(*lines: str) -> Book:
    """The book of a story of one node with two cards."""
    story = Story()
    for line in ("class l40s", "class l4", "node n1 l40s=2 l4=1 cpu=8", *lines):
        story.hear(line)
    return story.scene.book


async def observe(scene: Scene, book: Book) -> None:
    """Let the book see the claims as they stand in the API server."""
    for claim in await scene.all(GPU_CLAIM):
        view = read_claim(msgspec.json.encode(claim))
        book.store("gpuclaims", view.key, view)


async def waiting(scene: Scene, *names: str, at: int = 10) -> Book:
    """Held claims that are in the API server and wait, older ones first, as the book sees them."""
    for name in names:
        if scene.state.holding(scene.namespace, name) is None:
            claim = await scene.order(name)
        else:
            claim = scene.state.holdings[f"{scene.namespace}/{name}"].claim
        await scene.project(scene.hold(claim, at=at, reason=Wait.NO_ROOM, message="no node has room", told=stamp(at)))
    book = Book(scene.state)
    await observe(scene, book)
    return book


async def shown(scene: Scene, *names: str) -> list[int | None]:
    """The positions that claims show."""
    return [(await status(scene, name)).get("queuePosition") for name in names]


def test_the_claims_of_a_set_have_its_place() -> None:
    """D6: positions are those of serving order; who is placed has none, and held claims go with their VM's set."""
    book = told("start big l40s=2", "claim mine l40s=1", "start second l40s=2 uses=mine", "start third l40s=1 l4=1")
    found, sets = positions(book), {one.vmi.name: one for one in book.state.sets.values()}

    assert sets["big"].node
    assert {name: explain(book, "t", name).place for name in ("second", "third")} == {"second": 1, "third": 2}
    assert found == {f"t/{one.name}": 1 for one in sets["second"].claims} | {"t/mine": 1} | {
        f"t/{one.name}": 2 for one in sets["third"].claims
    }


def test_only_the_first_in_line_are_looked_at() -> None:
    """Exact up to the twentieth, absent behind; sets and ordered claims have lines of their own."""
    orders = [f"claim c{number:02} l40s=2 created={number}" for number in range(1, 26)]
    book = told("start first l40s=2", *(f"start w{number:02} l40s=1" for number in range(1, 26)), *orders)
    found = positions(book)

    ordered = {name: place for name, place in found.items() if name.startswith("t/c")}
    assert ordered == {f"t/c{number:02}": number for number in range(1, FIRST_IN_LINE + 1)}
    assert sorted(place for name, place in found.items() if name not in ordered) == list(range(1, FIRST_IN_LINE + 1))
    assert explain(book, "t", "c25").place == 25


def test_kubectl_shows_the_place() -> None:
    """`kubectl get -o wide` has a column for it."""
    (column,) = [one for one in CLAIM_COLUMNS if one.name == "Queue"]

    assert (column.json_path, column.type, column.priority) == (".status.queuePosition", "integer", 1)


async def test_a_waiting_claim_shows_its_place(scene: Scene) -> None:
    """T22: it stands beside the decision under an unchanged stamp, moves up, and goes when the claim is placed."""
    book = await waiting(scene, "a", "b", "c")
    writer = QueuePositions(scene.kube)
    before = await status(scene, "b")
    await writer.write(book)
    assert await shown(scene, "a", "b", "c") == [1, 2, 3]
    assert await status(scene, "b") == before | {"queuePosition": 2}

    # The status of the next decision takes it off again, the others move up.
    first = book.state.holdings[f"{scene.namespace}/a"].claim
    await scene.project(scene.hold(first, at=11, node=NODE))
    book = Book(scene.state)
    await observe(scene, book)
    await writer.write(book)

    assert await shown(scene, "a", "b", "c") == [None, 1, 2]
    assert (await status(scene, "a"))["phase"] == "Bound"


async def test_t12_a_place_that_a_backup_took_back_is_written_again(model: Scene) -> None:
    """T12: a claim that shows its decision without the place it was given shows that again after a look."""
    book = await waiting(model, "a", "b")
    writer = QueuePositions(model.kube)
    await writer.write(book)
    patch = [{"op": "remove", "path": "/status/queuePosition"}]
    body = msgspec.json.encode(patch)
    await model.kube.patch(GPU_CLAIM, model.namespace, "b", body, kind=PatchKind.JSON, subresource="status")
    await writer.write(book)
    assert await shown(model, "a", "b") == [1, None]

    writer.look_again()
    await writer.write(book)

    assert await shown(model, "a", "b") == [1, 2]


async def test_a_new_reason_keeps_the_place(model: Scene) -> None:
    """The status of a decision replaces all of it: the position is written anew once that is seen, and not before."""
    writer = QueuePositions(model.kube)
    await writer.write(await waiting(model, "a", "b"))
    book = await waiting(model, "b", at=11)
    assert await shown(model, "a", "b") == [1, None]
    await writer.write(book)
    assert await shown(model, "a", "b") == [1, 2]

    claim = model.state.holdings["tenant-a/a"].claim
    model.state.holdings["tenant-a/a"] = model.hold(claim, at=12, reason=Wait.NO_SUCH_DEVICE)
    model.state.holdings.pop("tenant-a/b")
    await writer.write(Book(model.state))
    assert (await status(model, "a"))["stamp"]["sequence"] == 10


async def test_a_set_of_a_vm_shows_its_place(model: Scene) -> None:
    """The template claims of the sets that wait have their set's place."""
    book, scene = told("start big l40s=2", "start second l40s=2", "start third l40s=1 l4=1"), await new_scene("t")
    await scene.project(*(one for one in book.state.sets.values() if not one.node))
    await observe(scene, book)
    await QueuePositions(scene.kube).write(book)

    places = [claim["status"]["queuePosition"] for claim in await scene.all(GPU_CLAIM)]
    assert places == [1, 2, 2]


async def test_a_position_left_by_an_earlier_start_goes(model: Scene) -> None:
    """What stands there is read once: nothing is written that stands there, and what holds no more is taken off."""
    book = await waiting(model, "a", "b")
    await QueuePositions(model.kube).write(book)
    version = (await model.get(GPU_CLAIM, "a"))["metadata"]["resourceVersion"]
    book.state.holdings.pop("tenant-a/b")
    await QueuePositions(model.kube).write(Book(book.state))

    assert (await model.get(GPU_CLAIM, "a"))["metadata"]["resourceVersion"] == version
    assert await shown(model, "a", "b") == [1, None]


async def test_a_newer_status_is_left_alone(model: Scene) -> None:
    """T22: a claim that shows another decision by now than was seen gets no position of the one before."""
    book = await waiting(model, "a")
    claim = model.state.holdings["tenant-a/a"].claim
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(book.state), type=type(book.state))
    await model.project(model.hold(claim, at=11, node=NODE))
    await QueuePositions(model.kube).write(Book(older))

    assert await shown(model, "a") == [None]


@pytest.mark.looptime
async def test_a_position_that_was_not_taken_is_written_later(model: Scene) -> None:
    """A server that can't be reached is asked again, without another change, at most once a second."""
    book = await waiting(model, "a")
    refusal = Refusal(ApiError(0, "Unreachable", ""), GPU_CLAIM)
    writer = QueuePositions(refusal.door(model.kube))
    running = asyncio.create_task(writer.run(book))
    writer.changed()
    await time_passes(5)
    assert await shown(model, "a") == [None]

    refusal.over = True
    await time_passes(2 * SECONDS_BETWEEN)
    running.cancel()

    assert await shown(model, "a") == [1]
