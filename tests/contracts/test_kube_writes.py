"""The contract of `Kube`: preconditions, patches, status, deletion and what goes because something went."""

import pytest

from binder.kube import ApiError, PatchKind
from deploy.world.virt_names import VMIRS
from schemas.kinds import CONFIGMAP, GPU_CLAIM, GPU_CLASS, NAMESPACE, POD, VMI
from tests.contracts.world import Object, World, config_map, json_of, read, said

NEVER = "d9607e19-f88f-11e6-a518-42010a800195"


def claim(name: str, **metadata: object) -> Object:
    """A claim for one card."""
    head = {"apiVersion": GPU_CLAIM.api_version, "kind": "GPUClaim", "metadata": {"name": name, **metadata}}
    return head | {"spec": {"className": "l40s", "count": 1}}


def owner(obj: Object) -> Object:
    """An owner reference to the object."""
    meta = obj["metadata"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}


async def test_a_write_of_an_older_version_conflicts(world: World) -> None:
    """A replacement that names another version than the stored one is a Conflict and changes nothing."""
    first = await world.create(config_map("a", {"k": "1"}))
    await world.merge("a", {"data": {"k": "2"}})
    with pytest.raises(ApiError) as caught:
        await world.replace(first | {"data": {"k": "3"}})
    assert said(caught.value) == (409, "Conflict")
    with pytest.raises(ApiError) as caught:
        await world.merge("a", {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {}})
    assert said(caught.value) == (409, "Conflict")
    assert (await world.get("a"))["data"] == {"k": "2"}


async def test_custom_kinds_are_never_replaced_blindly(world: World) -> None:
    """A ConfigMap may be replaced without naming a version; an object of a custom kind may not."""
    await world.create(config_map("a"))
    assert (await world.replace(config_map("a", {"k": "v"})))["data"] == {"k": "v"}
    await world.create(claim("a"), GPU_CLAIM)
    with pytest.raises(ApiError) as caught:
        await world.replace(claim("a", labels={"x": "y"}), GPU_CLAIM)
    assert said(caught.value) == (422, "Invalid")
    assert [cause.field for cause in caught.value.causes] == ["metadata.resourceVersion"]


async def test_another_uid_is_another_object(world: World) -> None:
    """A replacement that names another uid conflicts: the object was deleted and created again."""
    await world.create(config_map("a"))
    with pytest.raises(ApiError) as caught:
        await world.replace(config_map("a", uid=NEVER))
    assert said(caught.value) == (409, "Conflict")


async def test_writing_what_is_there_already_is_no_write(world: World) -> None:
    """A patch that changes nothing keeps the version."""
    created = await world.create(config_map("a", {"k": "v"}))
    assert await world.merge("a", {"data": {"k": "v"}}) == created


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "test", "path": "/data/absent", "value": "v"},
        {"op": "test", "path": "/absent/deep", "value": None},
        {"op": "remove", "path": "/data/absent"},
        {"op": "add", "path": "/absent/deep", "value": "v"},
    ],
)
async def test_a_patch_that_does_not_fit_is_a_generic_422(world: World, operation: Object) -> None:
    """A failed test, or a missing path, answers one 422 without causes, and nothing of the patch is done (T21)."""
    before = await world.create(config_map("a", {"k": "v"}))
    with pytest.raises(ApiError) as caught:
        await world.edit("a", {"op": "add", "path": "/data/new", "value": "n"}, operation)
    assert said(caught.value) == (422, "Invalid")
    assert caught.value.causes == ()
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert await world.get("a") == before


async def test_json_patches(world: World) -> None:
    """Operations apply in order; a test of an absent key against null holds, and replace sets an absent key."""
    await world.create(config_map("a", {"k": "v"}))
    after = await world.edit(
        "a",
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "test", "path": "/data/absent", "value": None},
        {"op": "replace", "path": "/data/absent", "value": "1"},
        {"op": "copy", "from": "/data/k", "path": "/data/copied"},
        {"op": "move", "from": "/data/k", "path": "/data/moved"},
        {"op": "add", "path": "/metadata/labels", "value": {"a.b/c": "d"}},
        {"op": "test", "path": "/metadata/labels/a.b~1c", "value": "d"},
    )
    assert after["data"] == {"absent": "1", "copied": "v", "moved": "v"}
    with pytest.raises(ApiError) as caught:
        await world.kube.patch(CONFIGMAP, world.namespace, "a", b'{"op":1}', kind=PatchKind.JSON)
    assert said(caught.value) == (400, "BadRequest")


async def test_an_apply_creates_and_then_updates(world: World) -> None:
    """A server-side apply creates what isn't there, and sets the applied fields of what is."""
    place = (CONFIGMAP, world.namespace, "a")
    first = await world.kube.patch(*place, json_of(config_map("a", {"k": "1"})), kind=PatchKind.APPLY)
    second = await world.kube.patch(*place, json_of(config_map("a", {"k": "2"})), kind=PatchKind.APPLY)
    assert read(second)["metadata"]["uid"] == read(first)["metadata"]["uid"]
    assert (await world.get("a"))["data"] == {"k": "2"}


async def test_a_delete_keeps_to_its_preconditions(world: World) -> None:
    """A deletion with another uid or an older version conflicts; with the present ones it deletes (T21)."""
    place = (CONFIGMAP, world.namespace, "a")
    old = (await world.create(config_map("a")))["metadata"]
    new = (await world.merge("a", {"data": {"k": "v"}}))["metadata"]
    for uid, version in ((NEVER, ""), ("", old["resourceVersion"]), (NEVER, new["resourceVersion"])):
        with pytest.raises(ApiError) as caught:
            await world.kube.delete(*place, uid=uid, resource_version=version)
        assert said(caught.value) == (409, "Conflict")
    await world.kube.delete(*place, uid=new["uid"], resource_version=new["resourceVersion"])
    assert await world.find("a") is None


async def test_finalizers_hold_an_object(world: World) -> None:
    """A deleted object stays until its last finalizer is removed; it takes no new ones meanwhile (C23)."""
    await world.create(config_map("a", finalizers=["x.example/one", "x.example/two"]))
    await world.kube.delete(CONFIGMAP, world.namespace, "a")
    held = await world.get("a")
    assert held["metadata"]["deletionTimestamp"]
    await world.kube.delete(CONFIGMAP, world.namespace, "a")
    assert await world.get("a") == held
    with pytest.raises(ApiError) as caught:
        await world.merge("a", {"metadata": {"finalizers": ["x.example/one", "x.example/two", "x.example/new"]}})
    assert said(caught.value) == (422, "Invalid")
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [
        ("metadata.finalizers", "FieldValueForbidden")
    ]
    await world.merge("a", {"metadata": {"finalizers": ["x.example/two"]}})
    assert await world.find("a") is not None
    await world.merge("a", {"metadata": {"finalizers": None}})
    assert await world.find("a") is None


async def test_dependents_go_with_their_owner(world: World) -> None:
    """What names a deleted owner is deleted; what names an owner that never was goes too; others stay."""
    lord = await world.create(config_map("owner"))
    other = await world.create(config_map("other"))
    never = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": NEVER}
    await world.create(config_map("alone", ownerReferences=[owner(lord)]))
    await world.create(config_map("shared", ownerReferences=[owner(lord), owner(other)]))
    await world.create(config_map("orphan", ownerReferences=[never]))
    await world.gone("orphan")
    assert await world.find("alone") is not None
    await world.kube.delete(CONFIGMAP, world.namespace, "owner")
    await world.gone("alone")

    async def has_one_owner() -> bool:
        return bool((await world.get("shared"))["metadata"]["ownerReferences"] == [owner(other)])

    await world.eventually(has_one_owner)


async def test_status_and_spec_are_written_apart(world: World) -> None:
    """Status writes touch status alone, others all else; annotations in a status write are dropped silently (T22)."""
    created = await world.create(claim("a") | {"status": {"phase": "Lost"}}, GPU_CLAIM)
    assert created.get("status", {}).get("phase") != "Lost"
    assert created["metadata"]["generation"] == 1
    patch: Object = {
        "metadata": {"annotations": {"x": "y"}},
        "spec": {"className": "a6000"},
        "status": {"phase": "Lost"},
    }
    after = await world.merge("a", patch, GPU_CLAIM, subresource="status")
    assert after["status"]["phase"] == "Lost"
    assert after["spec"] == created["spec"]
    assert "annotations" not in after["metadata"]
    assert after["metadata"]["generation"] == 1
    after = await world.merge("a", {"metadata": {"labels": {"x": "y"}}, "status": {"phase": "Bound"}}, GPU_CLAIM)
    assert after["status"]["phase"] == "Lost"
    assert after["metadata"]["labels"] == {"x": "y"}
    assert after["metadata"]["generation"] == 1


async def test_a_changed_spec_is_a_new_generation(world: World) -> None:
    """A write that changes the spec of a custom object raises its generation by one."""
    name = f"{world.namespace}-class"
    head = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": name}}
    spec = {"resourceName": "nvidia.com/AD102GL_L40S", "mode": "Passthrough"}
    await world.create(head | {"spec": spec}, GPU_CLASS)
    after = await world.merge(name, {"spec": {"maxCount": 4}}, GPU_CLASS)
    assert after["metadata"]["generation"] == 2
    await world.kube.delete(GPU_CLASS, "", name)


async def test_a_vmi_has_no_status_subresource(world: World) -> None:
    """The status of a VMI is written like its spec and raises the generation; `/status` isn't there."""
    spec = {"domain": {"devices": {}, "resources": {"requests": {"memory": "64M"}}}}
    body = {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": {"name": "a"}, "spec": spec}
    await world.create(body | {"status": {"phase": "Pending"}}, VMI)
    after = await world.merge("a", {"status": {"phase": "Scheduling"}}, VMI)
    assert after["status"]["phase"] == "Scheduling"
    assert after["metadata"]["generation"] == 2
    with pytest.raises(ApiError) as caught:
        await world.merge("a", {"status": {"phase": "Running"}}, VMI, subresource="status")
    assert said(caught.value) == (404, "NotFound")


async def test_replicas_are_written_through_scale(world: World) -> None:
    """A Scale shows and sets the replicas alone, and its version is the object's; elsewhere there is none (T20)."""
    template = {"metadata": {"labels": {"k": "v"}}, "spec": {"domain": {"devices": {}}}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"k": "v"}}, "template": template}
    head = {"apiVersion": VMIRS.api_version, "kind": VMIRS.kind, "metadata": {"name": "a"}}
    before = await world.create(head | {"spec": spec}, VMIRS)
    scale = await world.merge("a", {"spec": {"replicas": 3}}, VMIRS, subresource="scale")
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})
    after = await world.get("a", VMIRS)
    assert after["spec"] == spec | {"replicas": 3}
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert scale["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    again = await world.replace(scale | {"spec": {"replicas": 2}}, VMIRS, subresource="scale")
    assert again["spec"] == {"replicas": 2}
    with pytest.raises(ApiError) as caught:
        await world.replace(scale, VMIRS, subresource="scale")
    assert said(caught.value) == (409, "Conflict")
    await world.create(claim("a"), GPU_CLAIM)
    with pytest.raises(ApiError) as caught:
        await world.merge("a", {"spec": {"replicas": 3}}, GPU_CLAIM, subresource="scale")
    assert said(caught.value) == (404, "NotFound")


async def test_a_built_in_kind_without_status(world: World) -> None:
    """A ConfigMap has no status subresource."""
    await world.create(config_map("a"))
    with pytest.raises(ApiError) as caught:
        await world.merge("a", {"data": {}}, subresource="status")
    assert said(caught.value) == (404, "NotFound")


async def test_namespaces_end_after_what_they_hold(world: World) -> None:
    """A deleted namespace takes nothing new, deletes what it holds, waits for finalizers and then goes (C23)."""
    name = f"{world.namespace}-b"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    with pytest.raises(ApiError) as caught:
        await world.kube.create(CONFIGMAP, name, json_of(config_map("a")))
    assert said(caught.value) == (404, "NotFound")
    await world.create(body, NAMESPACE)
    held = config_map("held", finalizers=["x.example/one"])
    await world.kube.create(CONFIGMAP, name, json_of(held))
    await world.kube.create(CONFIGMAP, name, json_of(config_map("free")))
    await world.kube.delete(NAMESPACE, "", name)
    with pytest.raises(ApiError) as caught:
        await world.kube.create(CONFIGMAP, name, json_of(config_map("late")))
    assert said(caught.value) == (403, "Forbidden")
    assert [cause.reason for cause in caught.value.causes] == ["NamespaceTerminating"]
    assert (await world.get(name, NAMESPACE))["status"]["phase"] == "Terminating"
    there = World(world.kube, name)
    await there.gone("free")

    async def is_deleted() -> bool:
        return "deletionTimestamp" in (await there.get("held"))["metadata"]

    await world.eventually(is_deleted)
    await there.merge("held", {"metadata": {"finalizers": None}})
    await world.gone(name, NAMESPACE)


async def test_an_unknown_priority_class_is_refused(world: World) -> None:
    """A pod's priority class must exist; the system's own give their number."""
    with pytest.raises(ApiError) as caught:
        await world.create_pod("a", priorityClassName="nowhere")
    assert said(caught.value) == (403, "Forbidden")
    pod = await world.create_pod("a", priorityClassName="system-cluster-critical")
    assert pod["spec"]["priority"] == 2_000_000_000
    await world.kube.delete(POD, world.namespace, "a")
