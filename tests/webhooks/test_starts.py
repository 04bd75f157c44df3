"""Starts under Refuse at the edge: who is asked about, what goes onto the stream, who gives up, the pin (T16-T18)."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.world.patches import json_patch
from schemas import names
from schemas.admission import START_PATH
from schemas.decisions import PodAdmitted, VmiId
from schemas.events import MESSAGE_KINDS, StartRequest, StartWithdrawn, decode_event
from schemas.kinds import VMI
from schemas.reasons import Hold
from tests.webhooks.given import SLICE, Desk, Obj, Said, launcher, opened, review, said, until, vmi
from webhooks.pod import patch_of, read_pod
from webhooks.service import Patience
from webhooks.starts import UNDER_REFUSE, start_webhook

pytestmark = pytest.mark.looptime

QUICK = Patience(answer_s=0.5)
WHO = VmiId("tenant-a", "vm1", "u1")


def stored(policy: str = "Refuse", **fields: Any) -> Obj:  # noqa: ANN401 - any JSON
    """Return a VMI as it will be stored: with a uid, our devices and the policy that our mutating webhook wrote."""
    body = vmi(**fields)
    body["metadata"] |= {"uid": "u1"}
    body["metadata"]["annotations"][names.POLICY_ANNOTATION] = policy
    body["spec"]["domain"]["devices"]["gpus"] = [
        {"name": f"gpubinder-0-{unit}", "deviceName": SLICE} for unit in range(2)
    ]
    return body


async def start(desk: Desk, body: Obj, **changes: Any) -> Said:  # noqa: ANN401 - any JSON
    """Put a VMI that is about to be stored under review."""
    answer = await desk.webhooks.review_start(msgspec.json.encode(review(body, VMI, **changes)))
    return said(answer, body)


def requests(desk: Desk) -> list[StartRequest]:
    """Return the starts that were asked for on the stream."""
    return [event for body in desk.events() if isinstance(event := decode_event(body), StartRequest)]


async def withdrawn(desk: Desk) -> StartWithdrawn:
    """Wait until a start is withdrawn on the stream."""
    found: list[StartWithdrawn] = []

    async def there() -> bool:
        found[:] = [event for body in desk.events() if isinstance(event := decode_event(body), StartWithdrawn)]
        return bool(found)

    await until(there)
    return found[0]


async def test_a_start_is_asked_about_with_what_its_launcher_will_ask_for() -> None:
    """T16, T17: name, uid, entries, evidence, selector, affinity, volumes and amounts, and nothing else of the VMI."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    body = stored()
    body["spec"]["domain"]["resources"] = {"requests": {"memory": "8Gi", "cpu": "1500m"}}
    body["spec"] |= {"nodeSelector": {"disk": "fast"}, "affinity": {"nodeAffinity": required}}
    body["spec"]["volumes"] += [{"name": "d", "dataVolume": {"name": "data"}}]
    async with opened() as desk:
        desk.clerk.books = True

        answer = await start(desk, body)

        [asked] = requests(desk)
        assert (answer.allowed, answer.patch) == (True, ())
        assert (asked.vmi, asked.asked.gpus) == (WHO, body["metadata"]["annotations"][names.GPUS_ANNOTATION])
        assert asked.launcher.requests == {"cpu": 1500, "memory": 8 << 30}
        assert asked.launcher.node_selector == {"disk": "fast", "kubevirt.io/schedulable": "true"}
        assert [one.match_expressions[0].key for one in asked.launcher.terms or ()] == ["zone"]
        assert asked.launcher.volumes == ("data",)
        assert [view.name for view in asked.asked.classes] == ["l40s-24c"]
        assert b"hunter2" not in b"".join(desk.events())


async def test_a_start_asks_for_no_less_than_nothing() -> None:
    """A12: amounts below zero, which KubeVirt refuses at the same moment, make no room on the booked node."""
    body = stored()
    body["spec"]["domain"] |= {"resources": {"requests": {"cpu": "-64", "memory": -5}}, "memory": {"guest": "-8Gi"}}
    async with opened() as desk:
        await start(desk, body)
        body["spec"]["domain"]["resources"] = {"requests": {"cpu": "1"}}
        await start(desk, body)

        assert [one.launcher.requests for one in requests(desk)] == [{}, {"cpu": 1000}]


async def test_a_start_under_a_generated_name_is_booked_under_it() -> None:
    """T17: of a replica set's VMI the review has no name; the object that will be stored has one."""
    async with opened() as desk:
        answer = await start(desk, stored(), name="")

        [asked] = requests(desk)
        assert (answer.allowed, asked.vmi, asked.asked.name) == (True, WHO, "vm1")


@pytest.mark.parametrize("policy", ["Wait", "Schedule", ""])
async def test_other_policies_are_not_asked_about(policy: str) -> None:
    """T18: only Refuse books at admission, whatever the API server's match condition lets through."""
    async with opened() as desk:
        assert (await start(desk, stored(policy))).allowed
        assert desk.events() == []


async def test_a_refusal_is_told_and_the_next_try_is_asked_anew() -> None:
    """A12: the binder's sentence is the answer; room changes all the time, so no refusal stands for the next try."""
    async with opened() as desk:
        desk.clerk.books = False

        first, second = await start(desk, stored()), await start(desk, stored())

        assert (first.allowed, first.code, first.reason) == (False, 403, "NoRoom")
        assert first.message == second.message == "VMI tenant-a/vm1 can't start now: no room"
        assert len(requests(desk)) == 2


async def test_who_gives_up_withdraws() -> None:
    """T18: no answer in time is a refusal, and the binder hears that nobody waits; asked again, it is refused."""
    async with opened(QUICK) as desk:
        desk.clerk.silent = True
        body = review(stored(), VMI)

        first = said(await desk.webhooks.review_start(msgspec.json.encode(body)), stored())
        gone = await withdrawn(desk)
        again = said(await desk.webhooks.review_start(msgspec.json.encode(body)), stored())

        assert (first.allowed, again.allowed) == (False, False)
        assert "the binder gave no answer in time; nothing was booked, try again" in first.message
        assert (gone.request, gone.vmi) == (body["request"]["uid"], WHO)
        assert "given up before" in again.message
        assert len(requests(desk)) == 1


async def test_a_client_that_goes_withdraws() -> None:
    """T18: where the API server hangs up, its call is cancelled, and nobody is left to hear the answer."""
    async with opened() as desk:
        desk.clerk.silent = True
        asking = asyncio.create_task(start(desk, stored()))

        async def asked() -> bool:
            return bool(requests(desk))

        await until(asked)
        asking.cancel()

        assert (await withdrawn(desk)).vmi == WHO
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize(
    ("hold", "why"),
    [
        (Hold.NOT_WHOLE, "does not see the whole cluster yet"),
        (Hold.PAUSED, "placing is paused"),
        (Hold.NAMESAKE, "an earlier run of this VM has not ended"),
    ],
)
async def test_what_held_up_a_start_is_told(hold: Hold, why: str) -> None:
    """A start that the binder keeps is waited for, and refused with what it waited for when time is over."""
    async with opened(QUICK) as desk:
        desk.clerk.holds = hold

        answer = await start(desk, stored())

        assert (answer.allowed, answer.code) == (False, 503)
        assert why in answer.message
        assert (await desk.webhooks.health()).binder == ""
        assert (await withdrawn(desk)).vmi == WHO


async def test_a_leader_that_knows_no_starts_is_sent_none() -> None:
    """T6: a kind of message that the epoch does not announce is not published, and the start is refused."""
    async with opened(QUICK) as desk:
        await desk.clerk.open_epoch(kinds=tuple(kind for kind in MESSAGE_KINDS if kind != "request.start"))
        await desk.clerk.open_epoch(kinds=())

        async def refused() -> bool:
            return "does not read requests of kind request.start yet" in (await start(desk, stored())).message

        await until(refused)
        assert (await desk.vmi(vmi())).allowed


async def test_a_dry_run_books_nothing() -> None:
    """T19: a dry run of a start is answered by request/reply alone; its refusal is the same sentence."""
    async with opened() as desk:
        desk.clerk.books = True
        allowed = await start(desk, stored(), dryRun=True)
        desk.clerk.books = False
        refused = await start(desk, stored(), dryRun=True)

        assert (allowed.allowed, refused.allowed, refused.reason) == (True, False, "NoRoom")
        assert desk.events() == []


async def test_a_vmi_without_identity_is_refused() -> None:
    """T17: a webhook that sees no uid can't book: its configuration is wrong, and the start is refused."""
    body = stored()
    del body["metadata"]["uid"]
    async with opened() as desk:
        answer = await start(desk, body)

        assert (answer.allowed, answer.code) == (False, 400)
        assert desk.events() == []


def test_the_api_server_asks_under_refuse_alone() -> None:
    """I2, T19: fails closed, dry runs have no side effects, and the match condition reads our own mark."""
    entry = start_webhook("https://127.0.0.1:1", b"ca")

    assert entry["clientConfig"]["url"].endswith(START_PATH)
    assert (entry["failurePolicy"], entry["sideEffects"]) == ("Fail", "NoneOnDryRun")
    assert entry["objectSelector"] == {"matchLabels": {"cozystack.io/gpu-reference": "true"}}
    [condition] = entry["matchConditions"]
    assert condition["name"] == UNDER_REFUSE
    assert condition["expression"].endswith("== 'Refuse'")
    assert "reinvocationPolicy" not in entry


REQUIREMENT = st.fixed_dictionaries(
    {"key": st.sampled_from(["zone", "metadata.name"]), "operator": st.sampled_from(["In", "Exists"])},
    optional={"values": st.lists(st.sampled_from(["a", "n1", "n2"]), max_size=2)},
)
TERM = st.fixed_dictionaries(
    {},
    optional={"matchExpressions": st.lists(REQUIREMENT, max_size=2), "matchFields": st.lists(REQUIREMENT, max_size=2)},
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY = st.one_of(
    st.none(),
    st.just({}),
    st.just({"podAffinity": {}}),
    st.just({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}),
    st.builds(lambda terms: {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}, st.lists(TERM, max_size=4)),
)
PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@given(AFFINITY)
def test_the_pin_is_in_every_term_and_keeps_what_stood_there(affinity: Obj | None) -> None:
    """P1, C18: the node's name is ANDed into each term that accepts anything; nothing else changes; twice is once."""
    body = launcher(policy="Refuse")
    if affinity is not None:
        body["spec"]["affinity"] = affinity
    before = (affinity or {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms") or []

    after = pinned(body)
    terms = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    if not before:
        assert terms == [{"matchFields": [PIN]}]
    for old, new in zip(before, terms, strict=False):
        fields = list(old.get("matchFields") or [])
        accepts = bool(fields or old.get("matchExpressions"))
        wanted = fields + ([PIN] if accepts and PIN not in fields else [])
        assert (new.get("matchFields") or []) == wanted
        assert new.get("matchExpressions") == old.get("matchExpressions")
    assert "schedulingGates" not in after["spec"]
    assert pinned(after) == after


def pinned(body: Obj) -> Obj:
    """Return the launcher as the API server makes it of our answer."""
    admitted = PodAdmitted("r1", WHO, gate=False, node="n1")
    ops = patch_of(read_pod(msgspec.Raw(msgspec.json.encode(body))), admitted)
    found: Obj = json_patch(
        msgspec.json.decode(msgspec.json.encode(body)), msgspec.json.decode(msgspec.json.encode(ops))
    )
    return found
