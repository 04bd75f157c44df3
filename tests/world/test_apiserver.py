"""The model API server beyond the contract: admission, chance, backups and cuts."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from binder.kube import ApiError, Cause, PatchKind
from deploy.world.admission import Hook
from deploy.world.apiserver import ApiServer
from deploy.world.collector import Collector
from deploy.world.scheduler import Scheduler
from deploy.world.virt_names import SECRET
from schemas.kinds import CONFIGMAP, NAMESPACE, NODE, POD, VM, Resource
from tests.world.small import PLACE, Object, Still, Webhook, config_map, everything, labelling, read


async def test_mutating_hooks_see_no_identity_and_validating_ones_do() -> None:
    """A mutating hook sees neither uid nor generated name, a validating one both and the mutation (T17)."""
    server = ApiServer()
    mutating, validating = labelling("m"), Webhook()
    server.admit(Hook("a.example", mutating.review, ("configmaps",), mutating=True))
    server.admit(Hook("b.example", validating.review, ("configmaps",)))
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}})
    created = read(await server.as_user("alice", "people").create(*PLACE, body, dry_run=True))
    seen, final = mutating.requests[0], validating.requests[0]
    assert (seen["name"], seen["object"]["metadata"].get("name"), seen["object"]["metadata"].get("uid")) == (
        "",
        None,
        None,
    )
    assert final["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert final["object"]["metadata"]["name"] == created["metadata"]["name"]
    assert final["object"]["metadata"]["labels"] == created["metadata"]["labels"] == {"m": "set"}
    assert (seen["operation"], seen["dryRun"], seen["oldObject"]) == ("CREATE", True, None)
    assert seen["userInfo"] == {"username": "alice", "groups": ["people", "system:authenticated"]}
    assert seen["uid"] != final["uid"]


async def test_mutating_hooks_are_asked_by_name_and_once_more_if_they_wish() -> None:
    """Hooks run in the order of their names; one that asked for it is asked again after a later change (C26)."""
    server = ApiServer()
    first, second = Webhook(), labelling("m")
    server.admit(Hook("b.example", second.review, ("configmaps",), mutating=True))
    server.admit(Hook("a.example", first.review, ("configmaps",), mutating=True, reinvoke=True))
    await server.create(*PLACE, config_map("a"))
    assert [request["object"]["metadata"].get("labels") for request in first.requests] == [None, {"m": "set"}]
    assert len(second.requests) == 1


async def test_a_refusing_hook_is_quoted() -> None:
    """A refusal carries the hook's code, reason and message in the server's words; nothing is stored."""
    server = ApiServer()
    status = {"code": 422, "reason": "Invalid", "message": "no room"}
    server.admit(Hook("no.example", Webhook(allowed=False, status=status).review, ("configmaps",)))
    with pytest.raises(ApiError) as caught:
        await server.create(*PLACE, config_map("a"))
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message == 'admission webhook "no.example" denied the request: no room'
    assert not (await server.list_page(CONFIGMAP)).items


@pytest.mark.parametrize("fail_closed", [True, False])
async def test_a_broken_hook(*, fail_closed: bool) -> None:
    """A hook that breaks refuses with 500 where it fails closed, and is passed over where it fails open (C24)."""

    async def broken(_review: Object) -> Object:
        raise OSError("connection refused")

    server = ApiServer()
    server.admit(Hook("broken.example", broken, ("configmaps",), mutating=True, fail_closed=fail_closed))
    if not fail_closed:
        assert read(await server.create(*PLACE, config_map("a")))["metadata"]["uid"]
        return
    with pytest.raises(ApiError) as caught:
        await server.create(*PLACE, config_map("a"))
    assert caught.value.code == 500
    assert 'failed calling webhook "broken.example"' in caught.value.message


async def test_a_hook_is_asked_about_what_it_named() -> None:
    """Operations, subresources and match conditions decide whether a hook is asked (C24)."""
    server = ApiServer()
    deletes, statuses, picky = Webhook(), Webhook(), Webhook()
    server.admit(Hook("d.example", deletes.review, ("pods",), operations=("DELETE",)))
    server.admit(Hook("s.example", statuses.review, ("pods/status",)))
    server.admit(Hook("p.example", picky.review, ("pods",), when=lambda request: request["name"] == "other"))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    await server.create(POD, "default", msgspec.json.encode(pod))
    status = b'{"status":{"phase":"Failed"}}'
    await server.patch(POD, "default", "a", status, kind=PatchKind.MERGE, subresource="status")
    await server.delete(POD, "default", "a")
    assert [(r["operation"], r["object"], r["oldObject"]["metadata"]["name"]) for r in deletes.requests] == [
        ("DELETE", None, "a")
    ]
    assert [request["subResource"] for request in statuses.requests] == ["status"]
    assert picky.requests == []


async def test_a_write_that_was_overtaken_during_admission() -> None:
    """A patch whose object changed while a hook thought is applied to what is there then; a version conflicts."""
    server = ApiServer()
    await server.create(*PLACE, config_map("a"))
    first = read(await server.get(*PLACE, "a"))
    asked = 0

    async def slow(review: Object) -> Object:
        nonlocal asked
        asked += 1
        if asked in (1, 3):
            stored = server.store.get(CONFIGMAP, "default/a")
            assert stored is not None
            server.store.put(CONFIGMAP, "default/a", read(stored.raw) | {"data": {"other": str(asked)}})
        return {"response": {"allowed": True}}

    server.admit(Hook("slow.example", slow, ("configmaps",), operations=("UPDATE",)))
    after = read(await server.patch(*PLACE, "a", b'{"data":{"mine":"1"}}', kind=PatchKind.MERGE))
    assert after["data"] == {"other": "1", "mine": "1"}
    with pytest.raises(ApiError) as caught:
        await server.replace(*PLACE, "a", msgspec.json.encode(after | {"data": {}}))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert first["metadata"]["uid"] == after["metadata"]["uid"]


async def test_a_rule_stands_for_a_schema() -> None:
    """A registered rule sees the object before and after and refuses by field; defaults are filled in first (T22)."""
    server = ApiServer()

    def never_back(old: Object | None, new: Object) -> list[Cause]:
        before = int((old or {}).get("data", {}).get("stamp", "0"))
        return [Cause("data.stamp", "FieldValueInvalid")] if int(new["data"]["stamp"]) < before else []

    server.default(CONFIGMAP, lambda obj: obj | {"data": {"stamp": "1"} | obj.get("data", {})})
    server.rule(CONFIGMAP, never_back)
    assert read(await server.create(*PLACE, config_map("a")))["data"] == {"stamp": "1"}
    await server.patch(*PLACE, "a", b'{"data":{"stamp":"3"}}', kind=PatchKind.MERGE)
    with pytest.raises(ApiError) as caught:
        await server.patch(*PLACE, "a", b'{"data":{"stamp":"2"}}', kind=PatchKind.MERGE)
    assert (caught.value.code, caught.value.causes) == (422, (Cause("data.stamp", "FieldValueInvalid"),))


async def _history(seed: str) -> list[bytes]:
    """Return what a small life leaves in the server, down to uids, names and times."""
    server = ApiServer(seed=seed, clock=Still())
    collector, scheduler = Collector(server), Scheduler(server, clock=Still())
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}})
    for _ in range(3):
        await server.create(*PLACE, body)
    never = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "never"}
    await server.create(*PLACE, config_map("orphan", ownerReferences=[never]))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    await server.create(POD, "default", msgspec.json.encode(pod))
    await collector.settle()
    await scheduler.settle()
    return [change.raw for change in server.store.everything()]


async def test_string_data_of_a_secret_is_encoded() -> None:
    """A Secret's `stringData` is written only: reads show it as `data`."""
    server = ApiServer()
    server.serve(SECRET)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}}
    stored = read(await server.create(SECRET, "default", msgspec.json.encode(secret)))
    assert (stored["data"], "stringData" in stored) == ({"k": "dg=="}, False)


async def test_one_seed_is_one_history() -> None:
    """Two servers of one seed hold the same bytes after the same calls; another seed gives other uids (T10)."""
    assert await _history("s") == await _history("s")
    assert await _history("s") != await _history("t")


async def test_a_restored_backup_goes_back_in_versions() -> None:
    """After a restore objects and versions are as they were, watches end, and old uids are not given again (T12)."""
    server = ApiServer()
    await server.create(*PLACE, config_map("kept"))
    backup = server.store.backup()
    lost = read(await server.create(*PLACE, config_map("lost")))["metadata"]
    version = (await server.list_page(CONFIGMAP)).resource_version
    watch = server.watch(CONFIGMAP, resource_version=version, timeout_seconds=600)
    waiting = asyncio.ensure_future(everything(watch))
    await asyncio.sleep(0)
    server.store.restore(backup)
    assert await waiting == []
    page = await server.list_page(CONFIGMAP)
    assert [read(item)["metadata"]["name"] for item in page.items] == ["kept"]
    assert int(page.resource_version) < int(version)
    again = read(await server.create(*PLACE, config_map("lost")))["metadata"]
    assert again["resourceVersion"] == lost["resourceVersion"]
    assert again["uid"] != lost["uid"]


async def test_a_cut_watch_is_resumed_without_a_gap() -> None:
    """A cut ends watches; resumed at the last version they tell all that came between (C22)."""
    server = ApiServer()
    version = (await server.list_page(CONFIGMAP)).resource_version
    watch = asyncio.ensure_future(everything(server.watch(CONFIGMAP, resource_version=version, timeout_seconds=600)))
    await asyncio.sleep(0)
    server.store.cut()
    assert await watch == []
    await server.create(*PLACE, config_map("a"))
    async with aclosing(server.watch(CONFIGMAP, resource_version=version, timeout_seconds=600)) as events:  # type: ignore[type-var]  # both servers give generators
        assert read((await anext(events)).object)["metadata"]["name"] == "a"


async def test_a_bookmark_on_demand() -> None:
    """A bookmark asked for tells every watch how far the server is, and comes after what was written (T11)."""
    server = ApiServer()
    version = (await server.list_page(CONFIGMAP)).resource_version
    watch = server.watch(CONFIGMAP, resource_version=version, timeout_seconds=600)
    ahead = asyncio.ensure_future(anext(aiter(watch)))
    await asyncio.sleep(0)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    await server.create(NAMESPACE, "", msgspec.json.encode(namespace))
    server.store.bookmark()
    event = await ahead
    assert event.type == "BOOKMARK"
    assert read(event.object)["metadata"]["resourceVersion"] == str(server.store.version)


async def test_history_is_bounded() -> None:
    """A server remembers a bounded number of writes per resource and says so to whoever comes later."""
    server = ApiServer(history=10)
    version = (await server.list_page(CONFIGMAP)).resource_version
    for number in range(40):
        await server.create(*PLACE, config_map(f"a-{number}"))
    with pytest.raises(ApiError) as caught:
        await everything(server.watch(CONFIGMAP, resource_version=version, timeout_seconds=1))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_a_withdrawn_resource_is_not_served() -> None:
    """A resource that is withdrawn answers 404 and ends its watches; served again it is as it was (T11)."""
    server = ApiServer()
    vm = {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": {"name": "a"}, "spec": {"running": True}}
    await server.create(VM, "default", msgspec.json.encode(vm))
    watch = asyncio.ensure_future(everything(server.watch(VM, resource_version="0", timeout_seconds=600)))
    await asyncio.sleep(0)
    server.withdraw(VM)
    assert [event.type for event in await watch] == ["ADDED"]
    with pytest.raises(ApiError) as caught:
        await server.list_page(VM)
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    server.serve(VM)
    assert len((await server.list_page(VM)).items) == 1


def test_every_kind_is_served_and_known() -> None:
    """A fresh server serves each resource the program names; of the custom ones, VMIs and Workloads lack a status."""
    server = ApiServer()
    served: list[Resource] = list(server.writes.served.values())
    assert {POD, VM, NODE, CONFIGMAP} < set(served)
    without = [one.kind for one in served if server.writes.traits(one).custom and not server.writes.traits(one).status]
    assert sorted(without) == ["VirtualMachineInstance", "Workload"]
