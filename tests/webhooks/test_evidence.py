"""Evidence: read fresh for each request, and no start without it."""

import asyncio
from collections.abc import Awaitable

import msgspec
import pytest

from binder.kube import ApiError, PatchKind
from schemas.events import VmiRequest
from schemas.kinds import GPU_CLASS, KUBEVIRT, NAMESPACE, Resource
from tests.webhooks.given import CARD, SLICE, Desk, Obj, Said, gpus, launcher, opened, until, vmi
from webhooks.service import Patience

pytestmark = pytest.mark.looptime


async def change(desk: Desk, name: str, patch: Obj, subresource: str = "") -> None:
    """Edit a class."""
    body = msgspec.json.encode(patch)
    await desk.api.patch(GPU_CLASS, "", name, body, kind=PatchKind.MERGE, subresource=subresource)


def asked(desk: Desk) -> VmiRequest:
    """Return the last request that the binder got."""
    request = desk.clerk.asked[-1]
    assert isinstance(request, VmiRequest)
    return request


async def test_a_class_is_read_for_each_request(desk: Desk) -> None:
    """An edit counts for the very next request: there is no cache (A8)."""
    first = await desk.vmi(vmi())
    await change(desk, "l40s-24c", {"spec": {"resourceName": "nvidia.com/renamed"}})

    second = await desk.vmi(vmi())

    written = [answer.obj["spec"]["domain"]["devices"]["gpus"][0]["deviceName"] for answer in (first, second)]
    assert written == [SLICE, "nvidia.com/renamed"]


async def test_what_was_read_stands_in_the_request(desk: Desk) -> None:
    """Classes with uid and version, names that do not exist, KubeVirt's own: replay sees what was seen (T15)."""
    await desk.vmi(vmi(gpus({"className": "l40s"}, {"className": "h100"})))

    request = asked(desk)
    assert [(view.name, view.resource) for view in request.classes] == [("l40s", CARD)]
    assert all(view.uid and view.rv for view in request.classes)
    assert request.missing == ("h100",)
    assert request.kubevirt is not None
    assert request.kubevirt.namespace == "cozy-kubevirt"


async def test_nothing_is_read_that_no_rule_asks_for(desk: Desk) -> None:
    """A5, A8: a VMI's namespace is read if it names a class of vGPUs, a launcher's never: its VMI was asked."""
    read, seen = desk.api.get, list[str]()

    async def noting(resource: Resource, namespace: str, name: str) -> bytes:
        seen.append(resource.plural)
        return await read(resource, namespace, name)

    desk.api.get = noting  # type: ignore[method-assign]  # an API server that is looked at

    async def reads(answer: Awaitable[Said]) -> list[str]:
        seen.clear()
        assert (await answer).allowed
        return sorted(seen)

    await desk.vmi(vmi())
    classes_and_kubevirt = ["gpuclasses", "kubevirts"]
    assert await reads(desk.vmi(vmi())) == [*classes_and_kubevirt, "namespaces"]
    assert await reads(desk.vmi(vmi(gpus({"className": "l40s"})))) == classes_and_kubevirt
    assert await reads(desk.pod(launcher())) == classes_and_kubevirt


async def test_a_burst_that_names_several_classes_shares_the_reads_of_each(desk: Desk) -> None:
    """A8, T13: each class is read for all who ask at that moment, and once more for who came a moment later."""
    read, seen, held = desk.api.get, list[str](), asyncio.Event()

    async def holding(resource: Resource, namespace: str, name: str) -> bytes:
        seen.append(name)
        await held.wait()
        return await read(resource, namespace, name)

    await desk.vmi(vmi())
    desk.api.get = holding  # type: ignore[method-assign]  # an API server that answers when it is told to
    both = vmi(gpus({"className": "l40s"}, {"className": "l40s-24c"}))
    burst = [asyncio.create_task(desk.vmi(both)) for _ in range(8)]

    async def begun() -> bool:
        return {"l40s", "l40s-24c"} <= set(seen)

    await until(begun)
    held.set()
    assert all(answer.allowed for answer in await asyncio.gather(*burst))
    assert max(seen.count("l40s"), seen.count("l40s-24c")) <= 2


async def test_classes_of_other_named_resources_are_found(desk: Desk) -> None:
    """A host device makes us look whose it is; the classes that have nothing to do with it stay out (A7)."""
    await desk.vmi(vmi(gpus({"className": "l40s"}), devices={"hostDevices": [{"name": "h", "deviceName": SLICE}]}))

    assert [view.name for view in asked(desk).classes] == ["l40s", "l40s-24c"]


async def test_a_class_that_goes_is_refused_by_name(desk: Desk) -> None:
    """Deletion in progress and the conflict condition are seen at once (A3)."""
    await change(desk, "l40s-24c", {"metadata": {"finalizers": ["cozystack.io/gpu-class"]}})
    await desk.api.delete(GPU_CLASS, "", "l40s-24c")
    await desk.create(GPU_CLASS, "younger", {"spec": {"resourceName": CARD, "mode": "Passthrough"}})
    conflict = {"conditions": [{"type": "ResourceNameConflict", "status": "True"}]}
    await change(desk, "younger", {"status": conflict}, subresource="status")

    going = await desk.vmi(vmi())
    younger = await desk.vmi(vmi(gpus({"className": "younger"})))

    assert (going.reason, younger.reason) == ("ClassBeingDeleted", "ResourceNameConflict")


async def permit(desk: Desk, table: Obj | None) -> None:
    """Have the KubeVirt resource permit these devices; None: no table at all."""
    body = msgspec.json.encode({"spec": {"configuration": {"permittedHostDevices": table}}})
    await desk.api.patch(KUBEVIRT, "cozy-kubevirt", "kubevirt", body, kind=PatchKind.MERGE)


async def test_permitted_devices_are_read_fresh(desk: Desk) -> None:
    """C49, A6, A8: the next start is judged by the table of that moment; no table checks nothing.

    An empty one permits nothing. A resource that can't be read refuses: `test_without_evidence_no_start`.
    """
    cards = {"pciHostDevices": [{"pciVendorSelector": "10DE:26B9", "resourceName": CARD}]}
    slices = {"mediatedDevices": [{"mdevNameSelector": "NVIDIA L40S-24C", "resourceName": SLICE}]}
    card, sliced = vmi(gpus({"className": "l40s"})), vmi()

    await permit(desk, cards)
    refused = await desk.vmi(sliced)
    assert (refused.reason, (await desk.vmi(card)).allowed) == ("NotPermittedByKubeVirt", True)
    assert '"l40s-24c"' in refused.message
    await permit(desk, cards | slices)
    assert (await desk.vmi(sliced)).allowed
    await permit(desk, None)
    assert (await desk.vmi(sliced)).allowed
    await permit(desk, {})
    assert (await desk.vmi(card)).reason == "NotPermittedByKubeVirt"


async def test_a_kubevirt_that_moved_is_found(desk: Desk) -> None:
    """A8: the resource is read by its name, and looked for where it is gone: the next request shows where it is."""
    await desk.vmi(vmi())
    await desk.api.delete(KUBEVIRT, "cozy-kubevirt", "kubevirt")
    await desk.create(NAMESPACE, "elsewhere", {})
    await desk.create(KUBEVIRT, "kubevirt", {}, namespace="elsewhere")
    await desk.vmi(vmi())
    found = [one.kubevirt.namespace for one in desk.clerk.asked if isinstance(one, VmiRequest) and one.kubevirt]

    assert found == ["cozy-kubevirt", "elsewhere"]


async def test_who_may_list_alone_is_served(desk: Desk) -> None:
    """Rights that leave out the reading of one KubeVirt resource by name cost a list, and no start."""
    read = desk.api.get

    async def refusing(resource: Resource, namespace: str, name: str) -> bytes:
        if resource is KUBEVIRT:
            raise ApiError(403, "Forbidden", "no")
        return await read(resource, namespace, name)

    desk.api.get = refusing  # type: ignore[method-assign]  # an API server that knows roles

    for _ in range(3):
        assert (await desk.vmi(vmi())).allowed


async def test_without_kubevirt_no_pod_passes(desk: Desk) -> None:
    """No KubeVirt resource, or its kind not served: nobody can prove to be KubeVirt (T17)."""
    desk.api.withdraw(KUBEVIRT)

    answer = await desk.pod(launcher())

    assert (answer.allowed, answer.reason) == (False, "NotCreatedByKubeVirt")


TROUBLES = {
    "forbidden": ApiError(403, "Forbidden", "secret words"),
    "not reached": ApiError(0, "Unreachable", "secret words"),
    "server error": ApiError(500, "InternalError", "secret words"),
}


@pytest.mark.parametrize("plural", ["gpuclasses", "kubevirts"])
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
async def test_without_evidence_no_start(desk: Desk, plural: str, trouble: ApiError) -> None:
    """An API server that does not answer: refused with a sentence that says so, nothing asked of the binder (A8)."""
    desk.api.troubles[plural] = trouble

    answer = await desk.vmi(vmi())

    assert (answer.allowed, answer.code, answer.reason) == (False, 503, "EvidenceUnavailable")
    assert "could not be read" in answer.message
    assert "secret" not in answer.message
    assert desk.events() == []


@pytest.mark.parametrize("patience", [Patience(evidence_s=0.05), Patience(answer_s=0.05)], ids=["its own", "the whole"])
async def test_a_slow_api_server_is_not_waited_for(patience: Patience) -> None:
    """Reads end at their time limit and at the request's, and the refusal says so."""
    async with opened(patience) as desk:
        desk.api.troubles["gpuclasses"] = asyncio.Event()

        answer = await desk.vmi(vmi())

    assert (answer.code, answer.reason) == (503, "EvidenceUnavailable")
    assert "did not answer in time" in answer.message


async def test_a_class_that_cannot_be_read_is_named(desk: Desk) -> None:
    """An object of the wrong form refuses the start, naming it and the field."""
    await change(desk, "l40s-24c", {"spec": {"maxCount": "two"}})

    answer = await desk.vmi(vmi())

    assert answer.reason == "EvidenceUnavailable"
    assert "GPUClass l40s-24c" in answer.message
    assert "maxCount" in answer.message
