"""Classes wait for what uses them: our finalizer put on, and taken off again, whatever else stands there (K2)."""

import asyncio

import msgspec

from binder.kube import ApiError, PatchKind
from binder.records import ClassGuard
from deploy.world.faults import FaultyKube
from schemas.decisions import ClassFreed, ClassGuarded
from schemas.kinds import GPU_CLASS
from schemas.names import CLASS_FINALIZER
from tests.projector.faults import Life, Mishap
from tests.projector.scene import RESOURCE, SECONDS, Obj, Scene, stamp

FOREIGN = "example.org/slow"


async def a_class(scene: Scene, *finalizers: str) -> tuple[str, str]:
    """Create a class; return name and uid."""
    name = f"class-of-{scene.namespace}"
    body = {
        "apiVersion": GPU_CLASS.api_version,
        "kind": GPU_CLASS.kind,
        "metadata": {"name": name, "finalizers": list(finalizers)},
        "spec": {"resourceName": RESOURCE, "mode": "Passthrough"},
    }
    made = msgspec.json.decode(await scene.kube.create(GPU_CLASS, "", msgspec.json.encode(body)))
    return name, str(made["metadata"]["uid"])


async def find(scene: Scene, name: str) -> Obj | None:
    """Return a class, None where it is gone."""
    try:
        found: Obj = msgspec.json.decode(await scene.kube.get(GPU_CLASS, "", name))
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    return found


async def finalizers(scene: Scene, name: str) -> list[str]:
    """The finalizers of a class that is there."""
    found = await find(scene, name)
    assert found is not None
    kept: list[str] = found["metadata"].get("finalizers", [])
    return kept


async def say(scene: Scene, decision: ClassGuarded | ClassFreed, kube: FaultyKube | None = None) -> list[str]:
    """Let a projector write one decision; return what it reported."""
    async with scene.projector(kube) as projector:
        projector.take(scene.state, [], [(stamp(10), decision)])
        await asyncio.wait_for(projector.idle(), SECONDS)
    return [f"{one.action} {one.name} {one.code}" for one in await scene.outcomes()]


async def test_a_class_waits_and_is_let_go(scene: Scene) -> None:
    """K2: guarded it outlives its deletion, freed it goes."""
    name, uid = await a_class(scene)

    await say(scene, ClassGuarded(name, uid))
    assert await finalizers(scene, name) == [CLASS_FINALIZER]
    await say(scene, ClassFreed(name, uid))
    assert await finalizers(scene, name) == [CLASS_FINALIZER], "a class that is not being deleted is not let go"
    await scene.kube.delete(GPU_CLASS, "", name)
    assert await finalizers(scene, name) == [CLASS_FINALIZER]
    told = await say(scene, ClassFreed(name, uid))

    assert await find(scene, name) is None
    assert told == [f"guard-class {name} 0", f"unguard-class {name} 0", f"unguard-class {name} 0"]


async def test_a_class_made_again_is_another_one(model: Scene) -> None:
    """T21: by uid."""
    name, _ = await a_class(model)

    assert await say(model, ClassGuarded(name, "another")) == [f"guard-class {name} 0"]
    assert await finalizers(model, name) == []


async def test_others_finalizers_of_a_class_stay(scene: Scene) -> None:
    """K2: ours alone goes."""
    name, uid = await a_class(scene, FOREIGN, CLASS_FINALIZER)
    await scene.kube.delete(GPU_CLASS, "", name)

    await say(scene, ClassFreed(name, uid))

    assert await finalizers(scene, name) == [FOREIGN]
    body = msgspec.json.encode({"metadata": {"finalizers": None}})
    await scene.kube.patch(GPU_CLASS, "", name, body, kind=PatchKind.MERGE)


async def test_what_was_told_of_classes_before_a_start_is_done(model: Scene) -> None:
    """K2: a finalizer that was told to come or go, and is not seen to have, is written by the next projector."""
    name, uid = await a_class(model)
    for told, act in ((ClassGuard(uid, False, stamp(10)), None), (ClassGuard(uid, True, stamp(11)), "delete")):
        if act is not None:
            assert await finalizers(model, name) == [CLASS_FINALIZER]
            await model.kube.delete(GPU_CLASS, "", name)
        model.state.class_guards[name] = told
        async with model.projector() as projector:
            projector.begin(model.state)
            await asyncio.wait_for(projector.idle(), SECONDS)

    assert await find(model, name) is None
    assert [(one.action, one.stamp.sequence) for one in await model.outcomes()] == [
        ("guard-class", 10),
        ("unguard-class", 11),
    ]


async def test_a_class_is_guarded_in_spite_of_trouble(model: Scene) -> None:
    """T23: an unclear answer is tried again, whether the write had landed or not."""
    for mishap in (Mishap.LOST_BEFORE, Mishap.LOST_AFTER, Mishap.BUSY):
        name, uid = await a_class(model)
        life = Life(model.kube, {0: mishap})

        await say(model, ClassGuarded(name, uid), life.kube)

        assert await finalizers(model, name) == [CLASS_FINALIZER]
        body = msgspec.json.encode({"metadata": {"finalizers": None}})
        await model.kube.patch(GPU_CLASS, "", name, body, kind=PatchKind.MERGE)
        await model.kube.delete(GPU_CLASS, "", name)
