"""Metrics as a process shows them: each that is listed, with its labels, none beside, and true numbers."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from binder.follower import Follower
from binder.written import reason_of
from deploy.local import LocalNats
from deploy.role_names import Role
from deploy.watching.catalogue import LISTED, METRICS, By, Kind
from schemas.decided import Decided
from schemas.frames import Frame, decode_record
from schemas.kinds import GPU_BUDGET, GPU_CLASS
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.waiting import until
from tests.deploy.watched_stage import WAITING, Stage, settled, stage
from webhooks.certificates import expires

ONLY_WHERE = {
    "gpubinder_stopped": "something must stop the process",
    "gpubinder_role_restarts_total": "a role failed",
    "gpubinder_stream_max_bytes": "a stream has a limit of its own",
    "gpubinder_snapshot_age_seconds": "there is a snapshot",
    "gpubinder_budget_units": "an operator asks for it",
}
"""Metrics without a series, but where..."""


@pytest.fixture
async def staged(nats: LocalNats, tmp_path: Path) -> AsyncIterator[Stage]:
    """All roles on the example cluster, its VMs settled."""
    async with stage(nats, tmp_path) as here:
        await here.scraped(settled)
        yield here


async def logged(here: Stage, last: int) -> list[Decided]:
    """Return each decision of the log up to a sequence."""
    records = [
        decode_record(message.body)
        async for run in here.place.journal.read(DECISIONS, 1, until=last)
        for message in run
    ]
    frames = [record for record in records if isinstance(record, Frame)]
    return [one for frame in frames for entry in frame.entries for one in entry.decisions]


async def test_a_process_of_all_roles_shows_each_metric_that_is_listed(staged: Stage) -> None:
    """What the page of metrics lists is scraped, of that kind, with these labels and that help; and nothing else."""
    scrape = await staged.scrape()

    for one in METRICS:
        family = scrape.families[one.family]
        assert (family.type, family.documentation) == (str(one.kind), one.text), one.name
        for sample in family.samples:
            own = {"le"} if one.kind is Kind.HISTOGRAM and sample.name.endswith("_bucket") else set()
            assert set(sample.labels) == set(one.labels) | own, one.name
    assert set(scrape.families) == {one.family for one in LISTED.values()}
    bare = {one.name for one in METRICS if not scrape.families[one.family].samples}
    assert bare <= set(ONLY_WHERE)


async def test_no_label_names_what_tenants_name(staged: Stage) -> None:
    """Cardinality is bounded: no VM, namespace or node of the cluster stands in any label."""
    names = {part for vm in staged.cluster.starting for part in (vm["metadata"]["name"], vm["metadata"]["namespace"])}
    names |= set(nodes(await follow(staged, (await staged.ends())[DECISIONS])))

    told = {value for sample in (await staged.scrape()).samples for value in sample.labels.values()}

    assert not told & names


async def follow(here: Stage, last: int) -> Follower:
    """Return the state as the log tells it up to a sequence."""
    follower = Follower(here.place.journal)
    async for _ in follower.steps(until=last):
        pass
    await follower.close()
    return follower


def nodes(follower: Follower) -> Iterable[str]:
    """Return the names of the nodes."""
    return follower.book.state.objects["nodes"]


async def test_numbers_are_those_of_the_log(staged: Stage) -> None:
    """What is counted by the running process is what the log says, read by another."""
    scrape, ends = await staged.quiet()
    follower, decisions = await follow(staged, ends[DECISIONS]), await logged(staged, ends[DECISIONS])
    state = follower.book.state

    assert scrape.value("gpubinder_log_sequence") == follower.tip.sequence
    assert scrape.value("gpubinder_inputs_folded") == state.events_seq
    assert scrape.value("gpubinder_log_epoch") == state.epoch
    assert scrape.all("gpubinder_log_info")[0].labels == {"log_id": follower.tip.log_id}
    assert scrape.value("gpubinder_inputs_total") == state.events_seq
    assert not scrape.all("gpubinder_inputs_total", kind="other")
    made = Counter((str(one.__struct_config__.tag), reason_of(one)) for one in decisions)
    told = {
        (one.labels["kind"], one.labels["reason"]): int(one.value) for one in scrape.all("gpubinder_decisions_total")
    }
    assert told == made
    placed = sum(1 for one in state.sets.values() if one.node)
    assert scrape.value("gpubinder_sets", standing="placed") == placed > 0
    waits = Counter(str(one.reason) for one in state.sets.values() if not one.node)
    assert sum(waits.values()) == WAITING
    for reason, many in waits.items():
        assert sum(one.value for one in scrape.all("gpubinder_waiting_sets", reason=reason)) == many
        assert 0 <= scrape.value("gpubinder_waiting_oldest_seconds", reason=reason) < 3600
    for name in scrape.all("gpubinder_class_units", amount="held"):
        shown = msgspec.json.decode(await staged.place.kube.get(GPU_CLASS, "", name.labels["gpu_class"]))["status"]
        for amount in ("held", "free", "allocatable"):
            labels = {"gpu_class": name.labels["gpu_class"], "amount": amount}
            assert scrape.value("gpubinder_class_units", **labels) == shown[amount]


async def test_what_is_written_and_stored_is_counted(staged: Stage) -> None:
    """Appends by stream, writes by action, answers by verb, reviews by verdict: each sum is what really happened."""
    scrape, ends = await staged.quiet()

    assert scrape.value("gpubinder_appends_total", stream=EVENTS, outcome="stored") == ends[EVENTS]
    # The genesis was stored by another process.
    assert scrape.value("gpubinder_appends_total", stream=DECISIONS, outcome="stored") == ends[DECISIONS] - 1
    assert scrape.value("gpubinder_append_seconds_count", stream=EVENTS) == ends[EVENTS]
    assert scrape.value("gpubinder_append_waiting_seconds") == 0
    placed = scrape.value("gpubinder_sets", standing="placed")
    assert scrape.value("gpubinder_writes_total", action="set", verdict="landed") >= placed
    for action in ("set", "held"):
        assert scrape.value("gpubinder_writes_total", action=action, verdict="behind") == 0
    assert scrape.value("gpubinder_api_requests_total", verb="create", code="200") > 0
    assert scrape.value("gpubinder_admission_reviews_total", webhook="pods", verdict="admitted") == 8
    assert scrape.value("gpubinder_decide_seconds_count") == scrape.value("gpubinder_frames_total")


async def test_the_certificate_s_end_is_told(staged: Stage) -> None:
    """When the serving certificate ends is the end that its file says."""
    ends = expires(staged.door.files[0].read_bytes()).timestamp()

    assert (await staged.scrape()).value("gpubinder_certificate_expiry_seconds") == ends


async def test_budgets_are_told_by_how_full_they_are_and_one_by_one_where_asked(
    nats: LocalNats, tmp_path: Path
) -> None:
    """By default keys are counted by the share that is used; a series for each tenant is an operator's choice."""
    body = {
        "apiVersion": GPU_BUDGET.api_version,
        "kind": GPU_BUDGET.kind,
        "metadata": {"name": "gpus", "namespace": "tenant-acme"},
        "spec": {"hard": {f"{BUDGET_CLASS_PREFIX}l40s-24c": 1, BUDGET_TOTAL: 70}},
    }
    async with stage(nats, tmp_path, budget_metrics=True) as here:
        await here.scraped(settled)
        stored = await here.place.kube.create(GPU_BUDGET, "tenant-acme", msgspec.json.encode(body))
        scrape = await here.scraped(lambda one: sum(s.value for s in one.all("gpubinder_budget_keys")) == 2)

        await here.scraped(lambda one: one.value("gpubinder_writes_open") == 0)
        status = msgspec.json.decode(await here.place.kube.get(GPU_BUDGET, "tenant-acme", "gpus"))["status"]

    assert stored
    assert scrape.value("gpubinder_budget_keys", used="over") == 1
    assert scrape.value("gpubinder_budget_keys", used="half") == 1
    told = {
        (one.labels["key"], one.labels["amount"]): one.value
        for one in scrape.all("gpubinder_budget_units", namespace="tenant-acme", budget="gpus")
    }
    assert told[f"{BUDGET_CLASS_PREFIX}l40s-24c", "hard"] == 1
    assert {key: told[key, "used"] for key in status["used"]} == status["used"]
    assert told[BUDGET_TOTAL, "hard"] == 70


SHOWN_BY = {
    Role.BINDER: ({By.FOLLOWER, By.LEADER}, "gpubinder_log_epoch"),
    Role.INGEST: ({By.INGEST}, "gpubinder_deletions_waiting"),
    Role.PROJECTOR: ({By.PROJECTOR}, "gpubinder_writes_open"),
    Role.WEBHOOKS: ({By.WEBHOOKS}, "gpubinder_certificate_expiry_seconds"),
    Role.ACCOUNTING: (set[By](), "gpubinder_leading"),
}
"""Which metrics each role shows beside those of every process, and one of them."""


async def ready(here: Stage) -> tuple[int, str] | None:
    """Return what the page of readiness says once it says that all is well."""
    found = await here.page("/readyz")
    return found if found[0] == 200 else None


@pytest.mark.parametrize("role", list(Role))
async def test_each_role_alone_serves_its_metrics_and_health(nats: LocalNats, tmp_path: Path, role: Role) -> None:
    """A process of one role answers at all three pages, and shows what the page of metrics says, no more."""
    by, sign = SHOWN_BY[role]
    async with stage(nats, tmp_path, roles=(role,)) as here:
        scrape = await here.scraped(lambda one: bool(one.all(sign)))
        health = await here.page("/healthz"), await until(partial(ready, here))

    shown = {one.name for one in METRICS if scrape.families.get(one.family) and scrape.families[one.family].samples}
    assert shown <= {one.name for one in METRICS if one.by in {By.ALL, By.STREAMS, *by}}
    assert sign in shown
    assert health == ((200, "ok\n"), (200, "ok\n"))
