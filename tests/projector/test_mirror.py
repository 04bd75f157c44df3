"""A mirror shows what stands: listed, watched, cut off, compacted, restored, not served, unreadable."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import looptime
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from deploy.world.faults import Call, Fault, FaultyKube
from projector.mirror import AGAIN_S, UNSERVED_S, WATCH_S, Mirror, Mirrored
from schemas.kinds import CONFIGMAP
from tests.projector.conftest import new_scene
from tests.projector.scene import Scene, time_passes

ACTS = ("create", "edit", "delete", "cut", "compact", "withdraw", "restore", "wait")
CAUGHT_UP_S = 4 * WATCH_S[1]


class Noted(Mirrored, frozen=True, kw_only=True):
    """A config map and what it says."""

    text: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class _Body(msgspec.Struct, frozen=True):
    metadata: _Metadata
    data: dict[str, str] = {}


def read_noted(raw: msgspec.Raw | bytes) -> Noted | None:
    """Read a config map; one that says nothing does not matter, one that says `?` can't be read."""
    body = msgspec.json.decode(raw, type=_Body)
    text = body.data.get("text", "")
    if text == "?":
        raise msgspec.ValidationError("what is ? - at `$.data.text`")
    metadata = body.metadata
    view = Noted(
        name=metadata.name, namespace=metadata.namespace, uid=metadata.uid, rv=metadata.resource_version, text=text
    )
    return view if text else None


class Told:
    """What a mirror told of changes, replayed: it must come to what the mirror shows."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}

    def changed(self, before: Noted | None, after: Noted | None) -> None:
        """Take in a change; what was there before must be what was told before."""
        one = after or before
        assert one is not None
        assert self.shown.get(one.name) == (before.text if before else None)
        if after is not None:
            self.shown[one.name] = after.text
        else:
            del self.shown[one.name]


@asynccontextmanager
async def mirroring(
    scene: Scene, on_synced: Callable[[], None] = lambda: None
) -> AsyncIterator[tuple[Mirror[Noted], Told]]:
    """A mirror of the scene's config maps at work."""
    told = Told()
    mirror = Mirror(scene.kube, CONFIGMAP, read_noted, told.changed, on_synced)
    task = asyncio.create_task(mirror.run())
    try:
        yield mirror, told
        assert not task.done(), task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def say(scene: Scene, name: str, text: str) -> None:
    """Have a config map say this."""
    if await scene.find(CONFIGMAP, name) is None:
        await scene.create(CONFIGMAP, {"metadata": {"name": name}, "data": {"text": text}})
    else:
        await scene.patch(CONFIGMAP, name, {"data": {"text": text}})


def texts(mirror: Mirror[Noted]) -> dict[str, str]:
    """Return what the mirror shows."""
    return {view.name: view.text for view in mirror.everything()}


async def standing(scene: Scene) -> dict[str, str]:
    """Return what stands."""
    found = {one["metadata"]["name"]: one.get("data", {}).get("text", "") for one in await scene.all(CONFIGMAP)}
    return {name: text for name, text in found.items() if text}


@pytest.mark.looptime
async def test_what_is_listed_and_watched_is_shown(model: Scene) -> None:
    """What was there, what comes, changes and goes; an object that does not matter any more goes as well."""
    await say(model, "a", "1")
    await say(model, "b", "1")
    async with mirroring(model) as (mirror, told):
        await time_passes(1)
        assert mirror.synced
        assert texts(mirror) == {"a": "1", "b": "1"}
        await say(model, "c", "1")
        await say(model, "a", "2")
        await model.kube.delete(CONFIGMAP, model.namespace, "b")
        await say(model, "c", "")
        await time_passes(1)

        assert texts(mirror) == told.shown == {"a": "2"}
        found = mirror.get(model.namespace, "a")
        assert found is not None
        assert mirror.within(model.namespace) == [found]
        assert mirror.within("elsewhere") == []


@pytest.mark.looptime
async def test_an_object_that_can_not_be_read_stays_as_it_was(model: Scene) -> None:
    """An edit that nobody understands changes nothing that is known; of another one of its name nothing is known."""
    await say(model, "a", "1")
    async with mirroring(model) as (mirror, told):
        await time_passes(1)
        await say(model, "a", "?")
        await say(model, "b", "?")
        await time_passes(1)
        assert texts(mirror) == {"a": "1"}
        await model.kube.delete(CONFIGMAP, model.namespace, "a")
        await say(model, "a", "?")
        await time_passes(1)
        assert texts(mirror) == {}
        await say(model, "a", "2")
        await time_passes(1)

        assert texts(mirror) == told.shown == {"a": "2"}


@pytest.mark.looptime
async def test_the_answer_to_a_write_is_seen_at_once(model: Scene) -> None:
    """Taken in by hand, it is not undone by what comes of before: older versions and deletions change nothing."""
    await say(model, "a", "1")
    async with mirroring(model) as (mirror, _):
        await time_passes(1)
        older = await model.kube.get(CONFIGMAP, model.namespace, "a")
        await say(model, "a", "2")
        mirror.put(await model.kube.get(CONFIGMAP, model.namespace, "a"))
        assert texts(mirror) == {"a": "2"}
        mirror.put(older)
        mirror.drop(model.namespace, "a", msgspec.json.decode(older)["metadata"]["resourceVersion"])
        assert texts(mirror) == {"a": "2"}


@pytest.mark.looptime
async def test_a_kind_that_goes_is_kept_as_known_and_listed_when_it_comes_back(model: Scene) -> None:
    """D12: not served says nothing about objects; `synced` and `absent` say so meanwhile; each change is told."""
    assert isinstance(model.kube, ApiServer)
    synced = 0

    def note() -> None:
        nonlocal synced
        synced += 1

    model.kube.withdraw(CONFIGMAP)
    async with mirroring(model, note) as (mirror, told):
        await time_passes(3 * UNSERVED_S)
        assert (mirror.synced, mirror.absent, synced) == (False, True, 1)
        model.kube.serve(CONFIGMAP)
        await say(model, "a", "1")
        await time_passes(2 * UNSERVED_S)
        assert (mirror.synced, mirror.absent, synced) == (True, False, 2)
        model.kube.withdraw(CONFIGMAP)
        await time_passes(2 * UNSERVED_S)
        assert (mirror.synced, texts(mirror)) == (False, {"a": "1"})
        model.kube.serve(CONFIGMAP)
        await model.kube.delete(CONFIGMAP, model.namespace, "a")
        await time_passes(2 * UNSERVED_S)

        assert (mirror.synced, synced, texts(mirror), told.shown) == (True, 4, {}, {})


@pytest.mark.looptime
@pytest.mark.parametrize("bump", [0, 1000])
async def test_a_server_that_was_restored_is_believed(model: Scene, bump: int) -> None:
    """T12: its versions begin below those that are known, or far above: it is listed anew, and what it says is news."""
    assert isinstance(model.kube, ApiServer)
    await say(model, "a", "1")
    backup = model.kube.store.backup()
    async with mirroring(model) as (mirror, told):
        await time_passes(1)
        await say(model, "a", "2")
        await say(model, "b", "2")
        await time_passes(1)
        assert texts(mirror) == {"a": "2", "b": "2"}
        model.kube.store.restore(backup, bump=bump)
        await time_passes(AGAIN_S[1])

        assert texts(mirror) == told.shown == {"a": "1"}


@pytest.mark.looptime
async def test_a_watch_that_is_refused_is_told_once_and_asked_for_ever_more_rarely(model: Scene) -> None:
    """That a kind can be listed makes no refused watch good: it is said, and the server is not listed every moment."""
    asked: list[str] = []
    granted = False

    async def plan(call: Call) -> Fault | None:
        asked.append(call.verb)
        return Fault(ApiError(403, "Forbidden", "no watch for you")) if call.verb == "watch" and not granted else None

    plain, model.kube = model.kube, FaultyKube(model.kube, plan)
    await say(model, "a", "1")
    with capture_logs() as lines:
        async with mirroring(model) as (mirror, _):
            await time_passes(20 * AGAIN_S[1])
            assert texts(mirror) == {"a": "1"}
            told = [line for line in lines if line["event"] == "the API server refused"]
            granted = True
            await time_passes(2 * AGAIN_S[1])
            model.kube = plain
            await say(model, "a", "2")
            await time_passes(1)
            assert texts(mirror) == {"a": "2"}

    assert [line["remedy"] for line in told] == ["grant list and watch on this resource"]
    # Each pause is at least half of the longest one, but for the first few, which double.
    assert asked.count("list_page") < 2 * 20 + 16


@given(
    st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 3), st.integers(0, 9)), max_size=30), st.integers(0, 2**32)
)
@settings(deadline=None, max_examples=40)
def test_whatever_happens_a_mirror_comes_to_show_what_stands(acts: list[tuple[str, int, int]], seed: int) -> None:
    """C22, T12: writes, cut watches, forgotten versions, a kind that goes, a backup restored: in the end they agree."""
    random.seed(seed)
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        shown, told, stands = runner.run(_lived(acts))

    assert shown == told == stands


async def _lived(acts: list[tuple[str, int, int]]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    model = await new_scene()
    assert isinstance(model.kube, ApiServer)
    backup = model.kube.store.backup()
    async with mirroring(model) as (mirror, told):
        for act, number, amount in acts:
            name = f"c{number}"
            match act:
                case "create" | "edit":
                    await say(model, name, str(amount))
                case "delete" if await model.find(CONFIGMAP, name) is not None:
                    await model.kube.delete(CONFIGMAP, model.namespace, name)
                case "cut":
                    model.kube.store.cut()
                case "compact":
                    model.kube.store.compact()
                case "withdraw":
                    model.kube.withdraw(CONFIGMAP)
                    await time_passes(amount)
                    model.kube.serve(CONFIGMAP)
                case "restore" if amount < 5:
                    backup = model.kube.store.backup()
                case "restore":
                    model.kube.store.restore(backup, bump=1000 * (amount % 2))
                case _:
                    await time_passes(amount)
            await time_passes(amount / 10)
        await time_passes(CAUGHT_UP_S + AGAIN_S[1])
        return texts(mirror), told.shown, await standing(model)
