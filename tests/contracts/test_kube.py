"""The contract of `Kube`: reading, writing, watching. What holds here holds of the model and of a real server."""

from contextlib import aclosing

import msgspec
import pytest

from binder.kube import ApiError, Cause, PatchKind, WatchEvent
from schemas.kinds import CONFIGMAP, GPU_CLASS, NODE, Resource
from tests.contracts.world import World, config_map, json_of, read, said

UNSERVED = Resource("nobody.example", "v1", "things", "Thing", namespaced=True)


async def test_what_was_created_is_read_back(world: World) -> None:
    """A created object has identity, and the answer to its creation is what a read shows."""
    created = await world.create(config_map("a", {"k": "v"}))
    assert created == await world.get("a")
    meta = created["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"].isdigit()
    assert meta["creationTimestamp"].endswith("Z")
    assert (meta["namespace"], created["data"]) == (world.namespace, {"k": "v"})


async def test_a_name_is_taken_once(world: World) -> None:
    """A second create under the same name is AlreadyExists."""
    await world.create(config_map("a"))
    with pytest.raises(ApiError) as caught:
        await world.create(config_map("a"))
    assert said(caught.value) == (409, "AlreadyExists")
    assert caught.value.message == 'configmaps "a" already exists'


async def test_what_is_not_there_is_not_found(world: World) -> None:
    """Reads, patches, replacements and deletions of an absent object are NotFound, and so is a foreign kind."""
    place = (CONFIGMAP, world.namespace, "absent")
    for ask in (
        world.kube.get(*place),
        world.kube.patch(*place, b"{}", kind=PatchKind.MERGE),
        world.kube.replace(*place, json_of(config_map("absent"))),
        world.kube.delete(*place),
    ):
        with pytest.raises(ApiError) as caught:
            await ask
        assert said(caught.value) == (404, "NotFound")
        assert caught.value.message == 'configmaps "absent" not found'
    with pytest.raises(ApiError) as caught:
        await world.kube.list_page(UNSERVED)
    assert said(caught.value) == (404, "NotFound")


@pytest.mark.parametrize(
    ("body", "code", "causes"),
    [
        (config_map("Bad_Name"), 422, (Cause("metadata.name", "FieldValueInvalid"),)),
        (config_map(""), 422, (Cause("metadata.name", "FieldValueRequired"),)),
        (config_map("a", labels={"a b": "c"}), 422, (Cause("metadata.labels", "FieldValueInvalid"),)),
        (
            config_map("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p"}]),
            422,
            (Cause("metadata.ownerReferences.uid", "FieldValueInvalid"),),
        ),
        (config_map("a", namespace="elsewhere"), 400, ()),
        (config_map("a") | {"kind": "Secret"}, 400, ()),
        (config_map("a") | {"apiVersion": "v2"}, 400, ()),
        (config_map("a", resourceVersion="12"), 500, ()),
    ],
    ids=lambda value: None if isinstance(value, int | tuple) else str(value)[:1],
)
async def test_what_is_wrong_is_refused_by_field(
    world: World, body: dict[str, object], code: int, causes: tuple[Cause, ...]
) -> None:
    """A malformed object is refused with code, field and reason, and without its values (T16)."""
    with pytest.raises(ApiError) as caught:
        await world.create(body)
    assert (caught.value.code, caught.value.causes) == (code, causes)
    assert "Bad_Name is" not in caught.value.message


async def test_generated_names(world: World) -> None:
    """`generateName` gives each object a name of its own: at most 58 letters of the base, and five more."""
    base = "g" * 80
    names = {(await world.create(config_map("", generateName=base)))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert {(name[:58], len(name)) for name in names} == {("g" * 58, 63)}


async def test_a_dry_run_leaves_nothing(world: World) -> None:
    """A dry run answers as the create would, refusals included, and stores nothing (C25)."""
    before = await world.version()
    answered = await world.create(config_map("a", {"k": "v"}), dry_run=True)
    assert answered["data"] == {"k": "v"}
    assert await world.find("a") is None
    await world.create(config_map("a"))
    # The versions of a real server count every write of the cluster; a watch tells what was stored here.
    told = await world.watched(before, lambda kind, _: kind == "ADDED")
    assert [(kind, found["metadata"]["name"], found.get("data") or {}) for kind, found in told] == [("ADDED", "a", {})]
    with pytest.raises(ApiError) as caught:
        await world.create(config_map("a"), dry_run=True)
    assert said(caught.value) == (409, "AlreadyExists")


async def test_a_list_comes_sorted_and_in_pages_of_one_version(world: World) -> None:
    """Pages continue each other in the order of names and show one version, whatever was written in between."""
    for name in ("c", "a", "d", "b"):
        await world.create(config_map(f"page-{name}"))
    first = await world.kube.list_page(CONFIGMAP, namespace=world.namespace, limit=3)
    await world.create(config_map("page-aa"))
    names = [read(raw)["metadata"]["name"] for raw in first.items]
    page = first
    while page.continue_token:
        page = await world.kube.list_page(
            CONFIGMAP, namespace=world.namespace, limit=3, continue_token=page.continue_token
        )
        assert page.resource_version == first.resource_version
        names += [read(raw)["metadata"]["name"] for raw in page.items]
    assert [name for name in names if name.startswith("page-")] == ["page-a", "page-b", "page-c", "page-d"]
    assert names == sorted(names)


async def test_a_list_of_every_namespace_holds_this_one(world: World) -> None:
    """Without a namespace a list shows all of them; items of built-in kinds don't say what they are."""
    page = await world.kube.list_page(CONFIGMAP, limit=0)
    mine = [item for item in map(read, page.items) if item["metadata"]["namespace"] == world.namespace]
    assert "settled" in [item["metadata"]["name"] for item in mine]
    assert not any("kind" in item for item in mine)


async def test_a_broken_continue_token_is_a_bad_request(world: World) -> None:
    """A continue token that the server did not make is refused, and not as expired."""
    with pytest.raises(ApiError) as caught:
        await world.kube.list_page(CONFIGMAP, continue_token="no-token")
    assert said(caught.value) == (400, "BadRequest")


async def test_a_watch_tells_every_write_in_order(world: World) -> None:
    """Writes come down a watch in order, under growing versions; a deletion shows the last state (C22)."""
    version = await world.version()
    await world.create(config_map("a", {"k": "1"}))
    await world.merge("a", {"data": {"k": "2"}})
    await world.kube.delete(CONFIGMAP, world.namespace, "a")
    events = await world.watched(version, lambda kind, _: kind == "DELETED")
    told = [(kind, obj["data"]["k"]) for kind, obj in events if kind != "BOOKMARK"]
    assert told == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(version)


async def test_a_watch_begins_where_it_was_told_to(world: World) -> None:
    """A watch resumed at the version of an event tells what came after it, and nothing twice."""
    first = await world.create(config_map("a"))
    await world.create(config_map("b"))
    events = await world.watched(first["metadata"]["resourceVersion"], lambda kind, _: kind == "ADDED")
    assert [obj["metadata"]["name"] for _, obj in events if obj["metadata"].get("name")] == ["b"]


async def test_a_watch_tells_what_is_written_while_it_waits(world: World) -> None:
    """A write that comes while the watch is open comes down it."""
    version = await world.version()
    stream = world.kube.watch(CONFIGMAP, resource_version=version, timeout_seconds=120, namespace=world.namespace)
    await world.create(config_map("a"))
    first = await anext(stream)
    await world.create(config_map("b"))
    second = await anext(stream)
    assert [read(event.object)["metadata"]["name"] for event in (first, second)] == ["a", "b"]


async def test_a_watch_ends_after_a_bookmark(world: World) -> None:
    """A watch ends at its timeout without an error; a bookmark before that tells of writes it did not show (T11)."""
    version = await world.version()
    stream = world.kube.watch(CONFIGMAP, resource_version=version, timeout_seconds=5, namespace=world.namespace)
    await world.kube.create(CONFIGMAP, "default", json_of(config_map(world.namespace)))
    await world.kube.delete(CONFIGMAP, "default", world.namespace)
    events = [event async for event in stream]
    assert [event.type for event in events] == ["BOOKMARK"] * len(events)
    assert [int(_version_of(event)) > int(version) for event in events] == [True] * len(events)
    assert events


async def test_a_watch_from_a_forgotten_version_is_expired(forgetful: World) -> None:
    """After compaction resuming answers 410 as an error, never as an object; a fresh list goes on (C22)."""
    await forgetful.create(config_map("kept"))
    version = await forgetful.version()
    await forgetful.create(config_map("a"))
    await forgetful.kube.delete(CONFIGMAP, forgetful.namespace, "a")
    page = await forgetful.kube.list_page(CONFIGMAP, limit=1)
    await forgetful.merge("kept", {"data": {"k": "v"}})
    await forgetful.forget()
    with pytest.raises(ApiError) as caught:
        await forgetful.watched(version, lambda *_: False)
    assert said(caught.value) == (410, "Expired")
    with pytest.raises(ApiError) as caught:
        await forgetful.kube.list_page(CONFIGMAP, limit=1, continue_token=page.continue_token)
    assert said(caught.value) == (410, "Expired")
    fresh = await forgetful.version()
    await forgetful.create(config_map("b"))
    events = await forgetful.watched(fresh, lambda kind, _: kind == "ADDED")
    assert events[-1][1]["metadata"]["name"] == "b"


async def test_a_watch_that_is_left_leaves_nothing_behind(world: World) -> None:
    """A consumer may leave a watch half-way, and the next one works."""
    version = await world.version()
    await world.create(config_map("a"))
    for _ in range(3):
        stream = world.kube.watch(CONFIGMAP, resource_version=version, timeout_seconds=120, namespace=world.namespace)
        async with aclosing(stream) as events:  # type: ignore[type-var]  # both servers give generators
            assert (await anext(events)).type == "ADDED"


async def test_cluster_wide_kinds_have_no_namespace(world: World) -> None:
    """Nodes and classes are created, read and deleted without one; a custom kind's list says what it lists."""
    await world.create_node(f"{world.namespace}-n1")
    assert "namespace" not in (await world.get(f"{world.namespace}-n1", NODE))["metadata"]
    name = f"{world.namespace}-class"
    body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": name}}
    spec = {"resourceName": "nvidia.com/AD102GL_L40S", "mode": "Passthrough"}
    await world.create(body | {"spec": spec}, GPU_CLASS)
    items = [read(raw) for raw in (await world.kube.list_page(GPU_CLASS)).items]
    assert [item["kind"] for item in items if item["metadata"]["name"] == name] == ["GPUClass"]
    await world.kube.delete(GPU_CLASS, "", name)
    await world.gone(name, GPU_CLASS)


def _version_of(event: WatchEvent) -> str:
    return str(read(event.object)["metadata"]["resourceVersion"])


async def test_lists_and_watches_of_one_label(world: World) -> None:
    """Only objects with the label are listed and watched; one that gets it is ADDED, one that loses it DELETED."""
    labelled = msgspec.structs.replace(CONFIGMAP, labelled="example.org/marked")
    marked = {"example.org/marked": "x"}
    await world.create(config_map("plain"))
    await world.create(config_map("marked", labels=marked))
    page = await world.kube.list_page(labelled, namespace=world.namespace)

    stream = world.kube.watch(
        labelled, resource_version=page.resource_version, timeout_seconds=120, namespace=world.namespace
    )
    await world.merge("plain", {"metadata": {"labels": marked}})
    await world.create(config_map("other"))
    await world.merge("plain", {"data": {"k": "v"}})
    await world.merge("marked", {"metadata": {"labels": {"example.org/marked": None}}})
    await world.kube.delete(CONFIGMAP, world.namespace, "other")
    await world.kube.delete(CONFIGMAP, world.namespace, "plain")
    told = [await anext(stream) for _ in range(4)]

    assert [read(item)["metadata"]["name"] for item in page.items] == ["marked"]
    assert [(event.type, read(event.object)["metadata"]["name"]) for event in told] == [
        ("ADDED", "plain"),
        ("MODIFIED", "plain"),
        ("DELETED", "marked"),
        ("DELETED", "plain"),
    ]
