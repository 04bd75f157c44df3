"""Equal refusals are logged once a minute, with a count; anything that could change the answer is asked anew (T13)."""

import asyncio
import tracemalloc

import pytest
from msgspec.structs import replace

from schemas.decisions import Refused, VmiAdmitted
from schemas.events import OrderRequest, VmiRequest, decode_event
from schemas.kinds import GPU_CLASS
from schemas.objects import ClassView
from schemas.reasons import Refusal
from tests.webhooks.given import opened, until, vmi
from webhooks.refusals import KEPT_MAX, PASSING, RecentRefusals

pytestmark = pytest.mark.looptime

MISSING = '[{"className":"no-such-class"}]'


async def test_a_flood_of_equal_refusals_is_one_message() -> None:
    """A hundred retries of one refused start: each is answered, one stands in the log (T13)."""
    async with opened() as desk:
        answers = [await desk.vmi(vmi(MISSING)) for _ in range(100)]

        assert {answer.message for answer in answers} == {answers[0].message}
        assert not any(answer.allowed for answer in answers)
        assert len({answer.uid for answer in answers}) == len(answers)
        assert len(desk.events()) == 1


async def test_what_could_change_the_answer_is_asked_anew() -> None:
    """Once the class exists, the very next try passes; another VM's equal fault is its own message (T13)."""
    async with opened() as desk:
        assert not (await desk.vmi(vmi(MISSING))).allowed
        other = vmi(MISSING)
        other["metadata"]["name"] = "vm2"
        assert not (await desk.vmi(other)).allowed
        await desk.create(GPU_CLASS, "no-such-class", {"spec": {"resourceName": "nvidia.com/X", "mode": "Passthrough"}})
        assert (await desk.vmi(vmi(MISSING))).allowed
        assert len(desk.events()) == 3


def a_request(uid: str, *, rv: str = "1", name: str = "vm1") -> VmiRequest:
    """A request with one class as evidence."""
    return VmiRequest(uid, "tenant-a", name, "kubevirt", "[]", classes=(ClassView("l40s", "u1", rv),))


def refused(request: VmiRequest) -> Refused:
    """Its refusal."""
    return Refused(request.request, request.namespace, request.name, Refusal.CLASS_NOT_FOUND, "no such class")


async def test_after_the_minute_the_count_goes_to_the_log() -> None:
    """The first request after the minute is published, and says how many equals were refused unlogged (T13)."""
    recent = RecentRefusals(seconds=0.0)
    known = RecentRefusals(seconds=60.0)
    first, second = a_request("r1"), a_request("r2")
    for kept in (recent, known):
        kept.learn(first, refused(first))

    assert recent.again(second) is None
    assert known.again(second) == refused(second)
    assert known.again(a_request("r3", rv="2")) == refused(a_request("r3"))
    assert known.counted(a_request("r4")) == decode_event(
        b'{"type":"request.vmi","request":"r4","namespace":"tenant-a","name":"vm1","user":"kubevirt","gpus":"[]",'
        b'"classes":[{"type":"class","name":"l40s","uid":"u1","rv":"1"}],"repeats":2}'
    )


async def test_an_admission_ends_the_memory() -> None:
    """Who was admitted is not refused from memory, and starts to count anew."""
    recent = RecentRefusals()
    first = a_request("r1")
    recent.learn(first, refused(first))
    recent.learn(first, VmiAdmitted("r1", "tenant-a", "vm1", (), "Wait"))

    assert recent.again(a_request("r2")) is None
    assert recent.counted(a_request("r2")).repeats == 0


@pytest.mark.parametrize("count", [KEPT_MAX, KEPT_MAX + 1])
async def test_the_memory_is_bounded(count: int) -> None:
    """The oldest refusal is forgotten where too many different ones come."""
    recent = RecentRefusals()
    for number in range(count):
        request = a_request("r", name=f"vm{number}")
        recent.learn(request, refused(request))
    await asyncio.sleep(0)

    assert (recent.again(a_request("r", name="vm0")) is None) == (count > KEPT_MAX)


async def test_what_is_kept_of_a_refusal_is_small_however_long_its_request() -> None:
    """A tenant whose refused VMs list megabytes of devices does not fill the webhook's memory (T13)."""
    recent = RecentRefusals()
    tracemalloc.start()
    try:
        for number in range(50):
            long = replace(a_request(f"r{number}", name=f"vm{number}"), own_gpus=("x" * 200_000,))
            recent.learn(long, refused(long))
        del long
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("reason", PASSING)
async def test_what_leans_on_what_is_used_now_stands_for_a_moment(reason: Refusal) -> None:
    """Units come free: such a refusal is the answer to its equals for a second, not for a minute (T13, O1)."""
    recent = RecentRefusals()
    request = OrderRequest("o1", "tenant-a", "c", "alice", "l40s", 1)
    recent.learn(request, Refused("o1", "tenant-a", "c", reason, "not now"))

    assert recent.again(replace(request, request="o2")) is not None

    async def over() -> bool:
        return recent.again(request) is None

    await until(over)
    assert recent.counted(request) != request
