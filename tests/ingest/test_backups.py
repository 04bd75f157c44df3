"""An API server that came back from a backup: its versions went back, and it is believed (T12)."""

import pytest

from binder.kube import ApiError
from deploy.world.apiserver import ApiServer
from schemas import kinds
from schemas.events import SessionOpened
from schemas.objects import NodeView
from tests.ingest.following import Leader, following, settled, until
from tests.ingest.given import put
from tests.ingest.troubled import Troubled

pytestmark = pytest.mark.looptime


def of_kind(leader: Leader, kind: str) -> list[tuple[int, object]]:
    """Return (sequence, event) of one kind's messages in order."""
    return [(m.sequence, e) for m, e in leader.events if m.subject.endswith(f".{kind}")]


async def test_t12_a_server_that_came_back_from_a_backup_is_believed() -> None:
    """Versions go back: the new session says so, and what was written since the backup is gone (T12)."""
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    backup = server.store.backup()
    put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
    put(server, kinds.NODE, "node", "b")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        server.store.restore(backup)
        await settled(server, leader, ingest)
        opened = [event for _, event in of_kind(leader, "nodes") if isinstance(event, SessionOpened)]
        node = leader.folded()["nodes"]["a"]
    assert [event.rewound for event in opened] == [False, True]
    assert isinstance(node, NodeView)
    assert node.unschedulable


async def test_t12_what_one_kind_shows_is_believed_of_all() -> None:
    """A kind whose versions were overtaken by new writes since the backup is listed anew as well: it went back too."""
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    backup = server.store.backup()
    server.store.remove(kinds.NODE, "a")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
        known = server.store.version
        put(server, kinds.GPU_CLASS, "class", "l40s")
        await until(lambda: "l40s" in leader.folded()["gpuclasses"], "the class is seen")
        server.store.restore(backup)
        while server.store.version < known:
            put(server, kinds.NAMESPACE, "namespace", "new")
        await settled(server, leader, ingest)
        assert "a" in leader.folded()["nodes"]


async def test_t12_a_rewound_list_that_is_cut_off_is_still_rewound_when_it_is_read_again() -> None:
    """Until one list is complete the fold has not believed it: the next session says `rewound` too (T12)."""
    server = ApiServer()
    for name in "abc":
        put(server, kinds.NODE, "node", name)
    backup = server.store.backup()
    put(server, kinds.NODE, "node", "c", spec__unschedulable=None)
    kube = Troubled(server)
    kube.pages = 1
    async with following(server, kube=kube) as (ingest, leader):
        await settled(server, leader, ingest)
        kube.refusals["next", "nodes"] = ApiError(410, "Expired", "the provided continue parameter is too old")
        before = kube.requests["next", "nodes"]
        server.store.restore(backup)
        await until(lambda: kube.requests["next", "nodes"] > before, "the rewound list is cut off")
        del kube.refusals["next", "nodes"]
        await settled(server, leader, ingest)


async def test_t12_a_restarted_ingest_knows_from_the_log_that_versions_went_back() -> None:
    """It keeps nothing itself: the newest version on EVENTS is what a list is compared with (T12)."""
    server = ApiServer()
    backup = server.store.backup()
    put(server, kinds.NODE, "node", "a")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
    server.store.restore(backup)
    async with following(server, journal=leader.journal) as (ingest, again):
        await settled(server, again, ingest)
        opened = [event for _, event in of_kind(again, "nodes") if isinstance(event, SessionOpened)]
    assert [event.rewound for event in opened][-1]
    assert again.folded()["nodes"] == {}


async def test_t12_a_server_restored_with_bumped_versions_is_believed() -> None:
    """Versions only grow, and yet objects are as they were: older than known, in a list that is newer (T12)."""
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    put(server, kinds.NODE, "node", "c")
    backup = server.store.backup()
    put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
    put(server, kinds.NODE, "node", "b")
    server.store.remove(kinds.NODE, "c")
    async with following(server) as (ingest, leader):
        await settled(server, leader, ingest)
    server.store.restore(backup, bump=1000)
    async with following(server, journal=leader.journal) as (ingest, again):
        await settled(server, again, ingest)
        nodes = again.folded()["nodes"]
        assert again.book.state.sessions["nodes"].rewound
        assert not again.book.state.sessions["gpuclasses"].rewound
    assert sorted(nodes) == ["a", "c"]
    assert isinstance(nodes["a"], NodeView)
    assert nodes["a"].unschedulable


async def test_t12_a_watch_that_a_bumped_restore_cuts_shows_the_world_as_it_is() -> None:
    """The running ingest is told that its version is forgotten, and lists anew (T12)."""
    server = ApiServer()
    put(server, kinds.NODE, "node", "a")
    backup = server.store.backup()
    async with following(server) as (ingest, leader):
        put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
        await settled(server, leader, ingest)
        server.store.restore(backup, bump=1000)
        await settled(server, leader, ingest)
        put(server, kinds.NODE, "node", "a", spec__unschedulable=None)
        await settled(server, leader, ingest)
