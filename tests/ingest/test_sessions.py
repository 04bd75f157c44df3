"""Sessions of one kind and of all: their messages in order, and how they get over what an API server does."""

import pytest

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from ingest.watch import ASKED_S, WATCH_S
from schemas import kinds
from schemas.events import Changes, NotServed, Progress, SessionOpened, SessionSynced
from schemas.objects import Gone
from schemas.streams import EVENTS
from tests.error_logs import ErrorLogs
from tests.ingest.following import Leader, following, settled, until
from tests.ingest.given import put
from tests.ingest.troubled import Troubled

pytestmark = pytest.mark.looptime


def of_kind(leader: Leader, kind: str) -> list[tuple[int, object]]:
    """Return (sequence, event) of one kind's messages in order."""
    return [(m.sequence, e) for m, e in leader.events if m.subject.endswith(f".{kind}")]


async def test_t11_a_session_is_opened_listed_and_synced() -> None:
    """Its number is the sequence of the message that opened it; then the list in pages, then its end, in this order."""
    server = ApiServer()
    for name in "abcde":
        put(server, kinds.NODE, "node", name)
    newest = server.store.version
    kube = Troubled(server)
    kube.pages = 2
    async with following(server, kube=kube) as (ingest, leader):
        await settled(server, leader, ingest)
        (number, opened), *chunks, (_, synced) = of_kind(leader, "nodes")
        [announced] = [message.sequence for message, event in leader.events if event == Progress(())]
    assert opened == SessionOpened("nodes", process=announced)
    assert announced < number
    assert isinstance(synced, SessionSynced)
    assert synced == SessionSynced("nodes", number, synced.rv)
    assert newest <= int(synced.rv) <= server.store.version
    listed = [view.name for _, chunk in chunks if isinstance(chunk, Changes) for view in chunk.changes]
    assert listed == ["a", "b", "c", "d", "e"]
    assert {chunk.session for _, chunk in chunks if isinstance(chunk, Changes)} == {number}
    assert kube.requests["next", "nodes"] == 2


async def test_a_change_that_no_view_shows_is_dropped() -> None:
    """A heartbeat or an annotation makes no message; it moves the version by which the watch resumes."""
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        before = len(of_kind(leader, "nodes"))
        for beat in range(5):
            put(server, kinds.NODE, "node", "a", metadata__annotations={"beat": str(beat)})
        watching = ingest.watching["nodes"]
        await until(lambda: watching.version == str(server.store.version), "the heartbeats were read")
        put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
        await settled(server, leader, ingest)
        news = of_kind(leader, "nodes")[before:]
    assert watching.news.dropped == 5
    assert [len(event.changes) for _, event in news if isinstance(event, Changes)] == [1]


async def test_an_object_that_stops_to_matter_is_gone() -> None:
    """A VM whose template loses its marks is told as gone once, and not again when it is deleted."""
    server = ApiServer()
    put(server, kinds.VM, "vm", "a")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        change = put(server, kinds.VM, "vm", "a", spec__template={})
        await settled(server, leader, ingest)
        server.store.remove(kinds.VM, "tenant-a/a")
        put(server, kinds.VM, "vm", "b")
        await settled(server, leader, ingest)
        gone = [c for _, e in of_kind(leader, "virtualmachines") if isinstance(e, Changes) for c in e.changes]
    assert [c for c in gone if isinstance(c, Gone)] == [
        Gone("a", change.object["metadata"]["uid"], str(change.version), "tenant-a")
    ]


async def test_c22_deletes_missed_while_the_watch_was_down_are_found_by_a_relist() -> None:
    """Cut, deleted, compacted: resuming answers 410, a new session sees what is gone, without a tight loop (C22)."""
    server = ApiServer()
    for name in ("a", "b"):
        put(server, kinds.NODE, "node", name)
    kube = Troubled(server)
    async with following(server, kube=kube) as (ingest, leader):
        await settled(server, leader, ingest)
        kube.refusals["watch", "nodes"] = ApiError(0, "Unreachable", "down")
        server.store.cut()
        server.store.remove(kinds.NODE, "a")
        server.store.compact()
        await until(lambda: kube.requests["watch", "nodes"] > 3, "reconnects")
        del kube.refusals["watch", "nodes"]
        await settled(server, leader, ingest)
        sessions = [event for _, event in of_kind(leader, "nodes") if isinstance(event, SessionOpened)]
    assert len(sessions) == 2
    assert sorted(leader.folded()["nodes"]) == ["b"]
    assert kube.requests["watch", "nodes"] < 12
    assert kube.requests["list", "nodes"] < 12


async def test_a_server_that_forgets_at_once_is_not_listed_in_a_tight_loop() -> None:
    """410 after every list: eight sessions cost a few requests each, and come ever more slowly (C22)."""
    server = ApiServer()
    kube = Troubled(server)
    kube.refusals["watch", "nodes"] = ApiError(410, "Expired", "too old resource version")
    async with following(server, kube=kube) as (ingest, leader):
        await until(lambda: kube.requests["watch", "nodes"] >= 8, "eight sessions")
        del kube.refusals["watch", "nodes"]
        await settled(server, leader, ingest)
    assert kube.requests["list", "nodes"] <= 24


async def test_a_list_whose_version_is_forgotten_between_pages_begins_a_new_session() -> None:
    """410 for a continue token: what was read is void, the next session names all (T11)."""
    server = ApiServer()
    for name in "abcd":
        put(server, kinds.NODE, "node", name)
    kube = Troubled(server)
    kube.pages = 1
    kube.refusals["next", "nodes"] = ApiError(410, "Expired", "the provided continue parameter is too old")
    async with following(server, kube=kube) as (ingest, leader):
        await until(lambda: kube.requests["next", "nodes"] >= 1, "the second page is refused")
        del kube.refusals["next", "nodes"]
        await settled(server, leader, ingest)
        told = [event for _, event in of_kind(leader, "nodes")]
    steps = [type(event) for event in told if not isinstance(event, Changes)]
    assert steps[-2:] == [SessionOpened, SessionSynced]
    assert set(steps[:-1]) == {SessionOpened}
    assert len(steps) > 2


async def test_d12_a_kind_is_followed_once_it_is_served() -> None:
    """Not served is said once; when its CRD comes a session lists it; when that goes, what is known stays (D12)."""
    server = ApiServer()
    server.withdraw(kinds.VM)
    async with following(server) as (ingest, leader):
        await until(lambda: bool(leader.published(NotServed)), "said")
        await settled(server, leader, ingest)
        put(server, kinds.VM, "vm", "a")
        server.serve(kinds.VM)
        await settled(server, leader, ingest)
        assert len(leader.published(NotServed)) == 1
        server.withdraw(kinds.VM)
        await until(lambda: len(leader.published(NotServed)) == 2, "said again")
        assert list(leader.folded()["virtualmachines"]) == ["tenant-a/a"]
    first, second = leader.published(NotServed)
    opened = [n for n, event in of_kind(leader, "virtualmachines") if isinstance(event, SessionOpened)]
    assert (first, second) == (NotServed("virtualmachines", opened[0]), NotServed("virtualmachines", opened[-1]))


async def test_t11_a_new_epoch_gets_progress_of_every_kind_soon() -> None:
    """Every session tells progress beyond the tail that the epoch saw, within seconds; then watches are long again."""
    server = ApiServer()
    kube = Troubled(server)
    async with following(server, kube=kube) as (ingest, leader):
        await settled(server, leader, ingest)
        tail = await leader.begin()
        sessions = leader.book.state.sessions
        await until(lambda: all(s.progress > tail for s in sessions.values()), "progress of all kinds", seconds=5)
        progress = [event for m, event in leader.events if isinstance(event, Progress) and m.sequence > tail]
        told = {kind for event in progress for kind, _, _ in event.marks}
        await until(lambda: kube.timeouts[-1][1] != ASKED_S, "long watches again", seconds=10)
    assert len(sessions) == len(ingest.watching)
    assert told == set(ingest.watching)
    assert len(progress) <= 3
    assert {seconds for _, seconds in kube.timeouts} <= {ASKED_S, *range(WATCH_S[0], WATCH_S[1] + 1)}


async def test_t11_progress_is_told_where_no_bookmark_comes() -> None:
    """A server that sends no bookmarks is listed anew, so that a new leader is not stuck for ever."""
    server = ApiServer()
    kube = Troubled(server)
    kube.bookmarks = False
    async with following(server, kube=kube) as (ingest, leader):
        await settled(server, leader, ingest)
        put(server, kinds.NODE, "node", "a")
        server.store.cut()
        tail = await leader.begin()
        sessions = leader.book.state.sessions
        await until(lambda: all(s.synced and s.progress > tail for s in sessions.values()), "progress of all kinds")


async def test_t11_a_kind_that_is_not_served_says_so_to_each_epoch() -> None:
    """The new leader hears that the kind is still not there, from a look newer than itself."""
    server = ApiServer()
    server.withdraw(kinds.VMI)
    async with following(server) as (_, leader):
        await until(lambda: len(leader.published(NotServed)) == 1, "said")
        tail = await leader.begin()
        await until(lambda: len(leader.published(NotServed)) == 2, "said again", seconds=10)
        sequences = [message.sequence for message, event in leader.events if isinstance(event, NotServed)]
    assert sequences[-1] > tail


async def test_bookmarks_of_all_kinds_are_told_together() -> None:
    """A minute's bookmarks cost a message or two, not one per kind; each says how far its session came."""
    server = ApiServer()
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        put(server, kinds.PV, "pv", "a")
        server.store.bookmark()
        await until(lambda: any(event.marks for event in leader.published(Progress)), "bookmarks")
        first, *_ = [event for event in leader.published(Progress) if event.marks]
        sessions = leader.book.state.sessions
    assert {kind for kind, _, _ in first.marks} == set(ingest.watching)
    assert all(sessions[kind].number == session for kind, session, _ in first.marks)
    assert {rv for _, _, rv in first.marks} == {str(server.store.version)}


async def test_an_unreadable_update_changes_nothing_and_stops_nobody(error_logs: ErrorLogs) -> None:
    """The known view stays, through a relist too; other objects go on; it is counted."""
    server = ApiServer()
    for name in ("a", "b"):
        put(server, kinds.NODE, "node", name)
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        known = leader.folded()["nodes"]["a"]
        put(server, kinds.NODE, "node", "a", status__allocatable={"cpu": "lots"})
        put(server, kinds.NODE, "node", "b", spec__unschedulable=None)
        await until(lambda: leader.folded()["nodes"]["b"].unschedulable is False, "b is told")  # type: ignore[union-attr]  # a node
        assert leader.folded()["nodes"]["a"] == known
        server.store.cut()
        put(server, kinds.NODE, "node", "c")
        server.store.compact()
        await until(lambda: "c" in leader.folded()["nodes"], "listed anew")
        assert leader.folded()["nodes"]["a"] == known
        assert ingest.watching["nodes"].news.unreadable >= 2
        put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
        await settled(server, leader, ingest)


async def test_one_kind_that_is_refused_does_not_stop_the_others(error_logs: ErrorLogs) -> None:
    """The others sync; a lasting refusal is logged as an error once, with its remedy; asking goes on, more slowly."""
    error_logs.expect(r"the API server refused.*grant list and watch")
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    kube = Troubled(server)
    kube.refusals["list", "persistentvolumes"] = ApiError(403, "Forbidden", "may not list")
    async with following(server, kube=kube) as (ingest, leader):
        synced = leader.book.state.sessions
        await until(lambda: sum(s.synced for s in synced.values()) == len(ingest.watching) - 1, "the others")
        await until(lambda: kube.requests["list", "persistentvolumes"] > 8, "asked again")
        del kube.refusals["list", "persistentvolumes"]
        await settled(server, leader, ingest)
    assert len([line for line in error_logs.lines if "refused" in line]) == 1


async def test_a_loop_that_fails_is_started_again(error_logs: ErrorLogs) -> None:
    """An error nobody foresaw ends one kind's session; it is logged once, and a new one begins."""
    error_logs.expect("a loop of ingest failed")
    server = ApiServer()
    kube = Troubled(server)
    kube.refusals["watch", "nodes"] = RuntimeError("nobody foresaw this")  # type: ignore[assignment]  # on purpose
    async with following(server, kube=kube) as (ingest, leader):
        await until(lambda: kube.requests["watch", "nodes"] > 3, "tried again")
        del kube.refusals["watch", "nodes"]
        put(server, kinds.NODE, "node", "a")
        await settled(server, leader, ingest)
    assert len(error_logs.lines) == 1


async def test_t6_nothing_is_published_before_an_epoch_that_reads_it(error_logs: ErrorLogs) -> None:
    """A leader that does not announce our message version gets no message; it is said how to help that (T6)."""
    error_logs.expect("does not read the messages this program writes")
    server = ApiServer()
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        await leader.begin(99)
        await until(lambda: bool(error_logs.lines), "the epoch was read")
        tail = (await leader.journal.info(EVENTS)).last
        put(server, kinds.NODE, "node", "a")
        await until(lambda: ingest.credit.taken == 1, "a chunk waits")
        assert (await leader.journal.info(EVENTS)).last == tail
        await leader.begin(1, 99)
        await settled(server, leader, ingest)
