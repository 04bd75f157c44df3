"""K1, C54: the older of two classes of one resource name keeps it; the younger say so, judged anew on every change."""

from typing import Any

import msgspec
from msgspec.structs import replace

from binder.book import Book
from binder.kube import ApiError, PatchKind
from binder.state import empty_state
from ingest.classes import read_class
from projector.conflicts import elders
from projector.counts import ClassCounts
from schemas.kinds import GPU_CLASS
from schemas.objects import ClassView
from tests.projector.faults import Refusal
from tests.projector.scene import Scene

CARD, OTHER = "nvidia.com/AD102GL_L40S", "nvidia.com/other"


def book_of(*views: ClassView) -> Book:
    """Return a book that knows these classes."""
    state = empty_state()
    state.generation, state.events_seq = 1, 7
    state.objects["gpuclasses"] = {view.name: view for view in views}
    return Book(state)


def test_the_oldest_keeps_the_name() -> None:
    """By creation, also where its resource name was edited later; of one second, by name."""
    old = ClassView("old", "1", "1", resource=CARD, created=10)
    new = ClassView("new", "2", "2", resource=CARD, created=20)
    edited = ClassView("edited", "3", "3", resource=OTHER, created=5)
    twin = replace(old, name="a-twin", uid="4")

    assert elders(book_of(old, new, edited)) == {"old": "", "new": "old", "edited": ""}
    assert elders(book_of(old, new, replace(edited, resource=CARD))) == {"old": "edited", "new": "edited", "edited": ""}
    assert elders(book_of(new, edited)) == {"new": "", "edited": ""}
    assert elders(book_of(old, twin)) == {"old": "a-twin", "a-twin": ""}


class Classes:
    """Classes on an API server, and what they say."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.views: dict[str, ClassView] = {}
        self.counts = ClassCounts(scene.kube)

    def named(self, name: str) -> str:
        """Return a name of this test's own."""
        return f"{self.scene.namespace}-{name}"

    async def make(self, name: str, resource: str, created: int) -> None:
        """Create a class; its age is what the book is told, as the server's grain is a second."""
        spec = {"resourceName": resource, "mode": "Passthrough"}
        metadata = {"name": self.named(name)}
        body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": metadata, "spec": spec}
        await self.scene.kube.create(GPU_CLASS, "", msgspec.json.encode(body))
        self.views[name] = ClassView(self.named(name), "", "", created=created)

    async def judge(self, sequence: int, counts: ClassCounts | None = None) -> None:
        """Let the projector see all of them as they stand, at that place of the log."""
        for name, known in self.views.items():
            seen = read_class(await self.scene.kube.get(GPU_CLASS, "", known.name))
            self.views[name] = replace(seen, created=known.created)
        book = book_of(*self.views.values())
        book.state.events_seq = sequence
        await (counts or self.counts).write(book)

    async def says(self, name: str) -> list[tuple[str, str, str]]:
        """Return the conditions of a class: type, status, message."""
        body = msgspec.json.decode(await self.scene.kube.get(GPU_CLASS, "", self.named(name)))
        conditions: list[dict[str, Any]] = body["status"].get("conditions", [])
        return [(one["type"], one["status"], one["message"]) for one in conditions]

    async def patch(self, name: str, change: object, subresource: str = "") -> None:
        """Change a class."""
        body = msgspec.json.encode(change)
        await self.scene.kube.patch(
            GPU_CLASS, "", self.named(name), body, kind=PatchKind.MERGE, subresource=subresource
        )

    async def drop(self, name: str) -> None:
        """Delete a class."""
        await self.scene.kube.delete(GPU_CLASS, "", self.views.pop(name).name)

    def conflict(self, resource: str, elder: str) -> tuple[str, str, str]:
        """Return what a class says whose resource name an older one has."""
        told = f'belongs to the older class "{self.named(elder)}": give this class one of its own'
        return "ResourceNameConflict", "True", f"resource name {resource} {told}"

    def own(self, resource: str) -> tuple[str, str, str]:
        """Return what a class says that had a conflict."""
        return "ResourceNameConflict", "False", f"no older class has the resource name {resource}"


async def test_conflicts_are_judged_as_classes_come_change_and_go(scene: Scene) -> None:
    """C54: an edited name counts by its class's age; when the older goes, the younger's conflict ends by itself."""
    classes, card = Classes(scene), f"nvidia.com/{scene.namespace}"
    for name, resource, created in (("old", card, 10), ("new", card, 20), ("edited", f"{card}-other", 5)):
        await classes.make(name, resource, created)
    await classes.judge(8)
    assert [await classes.says(name) for name in ("old", "new", "edited")] == [[], [classes.conflict(card, "old")], []]

    await classes.patch("edited", {"spec": {"resourceName": card}})
    await classes.judge(9)
    both = [classes.conflict(card, "edited")]
    assert [await classes.says(name) for name in ("old", "new", "edited")] == [both, both, []]

    await classes.drop("edited")
    await classes.judge(10)
    assert await classes.says("old") == [classes.own(card)]
    assert await classes.says("new") == [classes.conflict(card, "old")]

    await classes.drop("old")
    await classes.judge(11)
    assert await classes.says("new") == [classes.own(card)]
    await classes.drop("new")


async def test_what_else_stands_there_stays_and_nothing_is_written_twice(model: Scene) -> None:
    """Another condition is kept; the same judgement again, also by a new process, writes nothing."""
    classes = Classes(model)
    await classes.make("old", CARD, 10)
    await classes.make("new", CARD, 20)
    licence = {"type": "LicenseSecretMissing", "status": "True", "reason": "Missing", "message": "m"}
    await classes.patch(
        "new", {"status": {"conditions": [licence | {"lastTransitionTime": "2026-05-03T10:00:00Z"}]}}, "status"
    )
    await classes.judge(8)
    told = [("LicenseSecretMissing", "True", "m"), classes.conflict(CARD, "old")]
    assert await classes.says("new") == told
    await classes.judge(9)
    version = classes.views["new"].rv

    await classes.judge(10, ClassCounts(model.kube))
    await classes.judge(11)

    assert classes.views["new"].rv == version


async def test_a_writer_behind_the_log_says_nothing(model: Scene) -> None:
    """T22: what was judged on an older picture does not overwrite what a newer one said."""
    classes = Classes(model)
    await classes.make("old", CARD, 10)
    await classes.make("new", CARD, 20)
    await classes.judge(9)
    del classes.views["old"]

    await classes.judge(8, ClassCounts(model.kube))

    assert await classes.says("new") == [classes.conflict(CARD, "old")]


async def test_a_write_that_was_not_taken_is_tried_again(model: Scene) -> None:
    """A server that can't be reached is asked again with the next look."""
    classes = Classes(model)
    await classes.make("old", CARD, 10)
    await classes.make("new", CARD, 20)
    refusal = Refusal(ApiError(0, "Unreachable", ""), GPU_CLASS)
    counts = ClassCounts(refusal.door(model.kube))
    await classes.judge(8, counts)
    refusal.over = True

    await classes.judge(8, counts)

    assert await classes.says("new") == [classes.conflict(CARD, "old")]
