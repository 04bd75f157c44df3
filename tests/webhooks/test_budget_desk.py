"""Writes and orders at the desk: what is asked of the binder, who is never asked about, and what passes unchecked."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from binder.book import Book
from binder.decide import answer
from binder.kube import ApiError
from binder.state import empty_state
from schemas.admission import CREATE, SCALE, UPDATE
from schemas.decisions import Decision
from schemas.events import AnyEvent, OrderRequest, WriteRequest, decode_event
from schemas.frames import Epoch, encode_record
from schemas.kinds import CONFIGMAP, GPU_CLAIM, GPU_CLASS, KUBEVIRT, VM, VM_POOL, VMI, VMI_REPLICA_SET, Resource
from schemas.names import BUDGET_CLASS_PREFIX, SETTING_CONTROLLERS, SETTINGS_CONFIGMAP, TEMPLATE_LABEL
from schemas.objects import BudgetView, PoolView, ReplicaSetView, VmView
from schemas.streams import DECISIONS, DECISIONS_EPOCH
from tests.webhooks.declaring import claim, pool, replica_set, scale, vm
from tests.webhooks.given import Clerk, Desk, Obj, Said, gpus, opened, review, said, until, vmi
from webhooks.service import Patience

pytestmark = pytest.mark.looptime

L40S = f"{BUDGET_CLASS_PREFIX}l40s"
SOMEBODY = {"username": "alice", "groups": ["system:authenticated"]}


class Bookkeeper(Clerk):
    """A clerk with the binder's own book: one budget of four units, nothing else known."""

    book: Book

    @override
    def decide(self, event: AnyEvent) -> Decision | None:
        """Return the answer of the heart to writes and orders."""
        if isinstance(event, WriteRequest | OrderRequest):
            return answer(self.book, event)
        return super().decide(event)


@pytest.fixture
async def books() -> AsyncIterator[Desk]:
    """A desk whose clerk keeps a book."""
    async with opened(Patience(answer_s=5.0, evidence_s=1.0, unchecked_s=1.0), clerk=Bookkeeper) as desk:
        assert isinstance(desk.clerk, Bookkeeper)
        desk.clerk.book = Book(empty_state())
        budget = BudgetView("b", "u", "1", "tenant-a", hard={L40S: 4})
        desk.clerk.book.store("gpubudgets", budget.key, budget)
        yield desk


async def written(desk: Desk, obj: Obj, resource: Resource = VM, **changes: Any) -> Said:  # noqa: ANN401 - any JSON
    """Put a write under review."""
    body = msgspec.json.encode(review(obj, resource, **({"userInfo": SOMEBODY} | changes)))
    return said((await desk.webhooks.write_verdict(body)).body, obj)


async def ordered(desk: Desk, obj: Obj, **changes: Any) -> Said:  # noqa: ANN401 - any JSON
    """Put an order under review."""
    body = msgspec.json.encode(review(obj, GPU_CLAIM, **({"userInfo": SOMEBODY} | changes)))
    return said((await desk.webhooks.order_verdict(body)).body, obj)


def asked(desk: Desk) -> list[AnyEvent]:
    """Return what stands on EVENTS."""
    return [decode_event(body) for body in desk.events()]


async def test_b2_a_write_beyond_a_budget_is_refused(books: Desk) -> None:
    """B2, T16, T19: the sentence says whose budget, key and numbers; only the view gets out; dry runs write none."""
    dry = await written(books, vm(5), dryRun=True)
    assert not books.events()
    refused, passed = await written(books, vm(5)), await written(books, vm(4))

    for one in (dry, refused):
        assert (one.allowed, one.code, one.reason) == (False, 403, "OverBudget")
        assert one.message.startswith(f"budget of tenant-a: {L40S} is limited to 4, 0 are declared, 5 more are asked;")
    assert (passed.allowed, passed.patch, passed.warnings) == (True, (), ())
    assert not any(b"hunter2" in body for body in books.events())


async def test_t15_an_update_shows_what_stands(books: Desk) -> None:
    """T15: the old object is evidence; where it had no entries, or is unreadable to us, nothing stands."""
    await written(books, vm(3), operation=UPDATE, oldObject=vm(2))
    bare = vm(2)
    del bare["spec"]["template"]["metadata"]
    await written(books, vm(3), operation=UPDATE, oldObject=bare)

    first, second = asked(books)
    assert isinstance(first, WriteRequest)
    assert isinstance(second, WriteRequest)
    assert first.before == VmView("vm1", "u1", "7", "tenant-a", gpus=gpus({"className": "l40s", "count": 2}))
    assert second.before is None
    assert first.view == second.view


async def test_b2_what_a_template_s_metadata_holds_lets_nothing_pass(books: Desk) -> None:
    """B2, T15: a null there is an empty text, as for KubeVirt; what stood there unreadable is no evidence."""
    obj, broken = vm(5), vm(1)
    obj["spec"]["template"]["metadata"]["annotations"]["x"] = None
    broken["spec"]["template"]["metadata"]["annotations"] = {"a": 7}
    for changes in ({}, {"operation": UPDATE, "oldObject": broken}):
        assert (await written(books, obj, VM, **changes)).reason == "OverBudget"


async def test_a_write_that_nests_deep_is_judged_like_any_other(books: Desk) -> None:
    """B2: metadata that KubeVirt lets anything into is no way past a budget, be it deeper than a decoder goes."""
    for count, passes in ((4, True), (5, False)):
        obj = vm(count)
        obj["spec"]["template"]["metadata"]["deep"] = "DEEP"
        deep = b'{"a":' * 9000 + b"1" + b"}" * 9000
        body = msgspec.json.encode(review(obj, VM, userInfo=SOMEBODY)).replace(b'"DEEP"', deep)
        answered = said((await books.webhooks.write_verdict(body)).body, obj)

        assert (answered.allowed, answered.warnings) == (passes, ())


async def test_t20_a_scale_is_judged_by_its_owners_template(books: Desk) -> None:
    """T20: the review holds a count alone; the pool is read fresh, and one that goes or has no entries asks nothing."""
    place = {"operation": UPDATE, "subResource": SCALE, "name": "pool", "kind": {"kind": "Scale"}}
    await books.api.create(VM_POOL, "tenant-a", msgspec.json.encode(pool(1)))
    refused = await written(books, scale(3), VM_POOL, oldObject=scale(1), **place)
    passed = await written(books, scale(2), VM_POOL, oldObject=scale(1), **place)
    nobody = await written(books, scale(9), VM_POOL, **(place | {"name": "gone"}))

    assert refused.message.startswith(f"budget of tenant-a: {L40S} is limited to 4, 0 are declared, 6 more are asked")
    assert passed.allowed
    assert nobody.allowed
    first, _ = asked(books)
    assert isinstance(first, WriteRequest)
    assert isinstance(first.view, PoolView)
    assert isinstance(first.before, PoolView)
    assert (first.kind, first.view.replicas, first.before.replicas) == (VM_POOL.plural, 3, 1)


async def test_what_does_not_say_how_many_has_one(books: Desk) -> None:
    """B2: replicas of a pool or a replica set that are not set are one, as KubeVirt takes it."""
    for resource, some in ((VM_POOL, pool), (VMI_REPLICA_SET, replica_set)):
        assert (await written(books, some(None), resource)).allowed
        assert (await written(books, some(3), resource)).reason == "OverBudget"
    one, _, other, _ = asked(books)

    for request, view in ((one, PoolView), (other, ReplicaSetView)):
        assert isinstance(request, WriteRequest)
        assert isinstance(request.view, view)
        assert request.view.replicas == 1


async def test_what_asks_for_nothing_is_not_asked_about(books: Desk) -> None:
    """T20: no entries, an object that goes, a deletion, a status."""
    bare = vm(9)
    del bare["spec"]["template"]["metadata"]
    answers = [
        await written(books, bare),
        await written(books, vm(9, deletionTimestamp="2026-01-01T00:00:00Z"), operation=UPDATE, oldObject=vm(1)),
        await written(books, vm(9), operation="DELETE"),
        await written(books, vm(9), operation=UPDATE, subResource="status"),
        await ordered(books, claim(99), operation=UPDATE),
    ]

    assert all(one.allowed for one in answers)
    assert not books.events()


async def test_what_kubevirt_starts_is_not_asked_about_again(books: Desk) -> None:
    """T25: its own account for an owner is believed; a stranger that names one, and a VMI of nobody, are not."""
    obj = vmi(gpus({"className": "l40s", "count": 5}))
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm1", "uid": "u1", "controller": True}
    owned = obj | {"metadata": obj["metadata"] | {"ownerReferences": [owner]}}
    kubevirt = {"username": "system:serviceaccount:cozy-kubevirt:kubevirt-controller"}

    assert (await written(books, owned, VMI, userInfo=kubevirt)).allowed
    assert not books.events()
    assert not (await written(books, owned, VMI)).allowed
    assert not (await written(books, obj, VMI, userInfo=kubevirt)).allowed


async def test_t20_writes_that_nobody_answers_pass_with_a_warning(books: Desk) -> None:
    """T20: no binder, no evidence, an unreadable object: each passes and says so; an order is refused each time."""
    broken = vm(1)
    broken["spec"]["template"]["metadata"]["annotations"] = 7
    unread = await written(books, broken)
    books.api.troubles[KUBEVIRT.plural] = ApiError(500, "InternalError", "")
    blind, order_blind = await written(books, vmi(), VMI), await ordered(books, claim())
    books.api.troubles.clear()
    books.clerk.silent = True
    silent, order_silent = await written(books, vm(5)), await ordered(books, claim())
    for one in (unread, blind, silent):
        assert one.allowed
        assert one.warnings[0].startswith("GPU budgets were not checked: ")
    assert (order_blind.code, order_blind.reason) == (503, "EvidenceUnavailable")
    assert (order_silent.code, order_silent.reason) == (503, "NoAnswer")


async def test_t6_a_binder_that_does_not_read_such_requests_is_not_asked(books: Desk) -> None:
    """T6: an epoch that announces other kinds gets none of ours: the write passes, the order is refused."""
    kinds = ("request.pod", "request.vmi", "tick")
    epoch = Epoch("log", 1, "older", "n", "test", 1, 0, (1,), message_kinds=kinds)
    await books.journal.append(DECISIONS, DECISIONS_EPOCH, encode_record(epoch), message_id="")

    async def heard() -> bool:
        return books.webhooks._answers._kinds == kinds  # noqa: SLF001 - the record is read a moment later

    await until(heard)
    assert "does not read requests" in (await ordered(books, claim())).message
    assert "does not read" in (await written(books, vm(5))).warnings[0]
    assert not books.events()


async def test_a5_an_order_shows_its_class_and_its_namespace(books: Desk) -> None:
    """O1, A5, A8: both read fresh, the namespace for vGPUs alone; a class that is not there is named."""
    slices, cards = await ordered(books, claim(99, "l40s-24c")), await ordered(books, claim(99))
    missing = await ordered(books, claim(gpu_class="ghost"))

    first, second, third = (one for one in asked(books) if isinstance(one, OrderRequest))
    assert first.home is not None
    assert (first.classes[0].name, first.home.name, first.home.vgpu) == ("l40s-24c", "tenant-a", True)
    assert (second.classes[0].name, second.home) == ("l40s", None)
    assert (third.classes, third.missing, third.home) == ((), ("ghost",), None)
    assert [said.reason for said in (slices, cards, missing)] == ["OverMaximumCount"] * 2 + ["ClassNotFound"]


@pytest.mark.parametrize(
    "name", ["l40s?watch=true", "l40s/status", "..", "../namespaces/kube-system", "l40s#", "L 40S"]
)
async def test_what_can_be_no_name_is_looked_for_nowhere(books: Desk, name: str) -> None:
    """O1, A3: a tenant writes the class of an order, and no path or query of ours with it: there is no such class."""
    books.api.troubles[GPU_CLASS.plural] = ApiError(500, "InternalError", "")

    answer = await ordered(books, claim(gpu_class=name))

    assert (answer.code, answer.reason) == (403, "ClassNotFound")
    assert not set("/?# ") & set(GPU_CLASS.path(name=name).removeprefix(f"{GPU_CLASS.path()}/"))


@pytest.mark.parametrize("listed", [False, True])
async def test_n4_only_we_make_claims_of_templates(books: Desk, listed: bool) -> None:
    """N4: our own accounts, or whom the settings list; whoever else marks a claim so is refused unasked."""
    name = "alice" if listed else "system:serviceaccount:gpubinder:x"
    ours = {"username": name, "groups": ["system:serviceaccounts:gpubinder"] if not listed else []}
    other = {"username": "bob", "groups": ["system:serviceaccounts:gpubinder"] if listed else []}
    books.api.writes.seed_namespace("gpubinder")
    if listed:
        data = {SETTING_CONTROLLERS: "x, alice"}
        await books.create(CONFIGMAP, SETTINGS_CONFIGMAP, {"data": data}, "gpubinder")
    marked = claim(99, **{TEMPLATE_LABEL: "true"})

    assert (await ordered(books, marked, userInfo=ours)).allowed
    refused = await ordered(books, marked, userInfo=other)
    assert (refused.code, refused.reason) == (403, "ReservedMark")
    assert not books.events()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"request":{"uid":"u"}}', b'{"request":{"uid":7}}'])
async def test_any_body_gets_an_answer(books: Desk, body: bytes) -> None:
    """Whatever comes in, an AdmissionReview goes out."""
    for verdict in (await books.webhooks.write_verdict(body), await books.webhooks.order_verdict(body)):
        assert msgspec.json.decode(verdict.body)["kind"] == "AdmissionReview"


async def test_reviews_of_other_kinds_are_turned_away(books: Desk) -> None:
    """A configuration that sends us something else is told so: an order is refused, a write passes with the warning."""
    pod = {"metadata": {"name": "p"}}
    order = await ordered(books, pod, kind={"kind": "Pod"}, operation=CREATE)
    write = await written(books, pod, GPU_CLAIM)

    assert order.code == 400
    assert "was sent to the webhook" in write.warnings[0]
