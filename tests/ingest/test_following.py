"""What ingest publishes, folded, is the world: through lists, lost watches, missed deletes and backups."""

import asyncio
from dataclasses import dataclass

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.world.apiserver import ApiServer
from ingest.service import Ingest
from schemas import kinds
from schemas.kinds import Resource
from tests.ingest.following import Leader, following, settled, time_passes, until
from tests.ingest.given import Object, put

NAMES = ("a", "b", "c")
NODE_VARIANTS: tuple[Object, ...] = (
    {},
    {"metadata__labels": {"zone": "b"}},
    {"metadata__annotations": {"seen": "never"}},
    {"spec__unschedulable": None},
)
POD_VARIANTS: tuple[Object, ...] = (
    {},
    {"metadata__labels": None},
    {"metadata__labels": None, "spec__nodeName": "n1"},
    {"spec__nodeName": "n1", "status__phase": "Failed"},
)
VM_VARIANTS: tuple[Object, ...] = ({}, {"spec__template": {}}, {"spec__runStrategy": "Halted"})
WATCHED: dict[Resource, tuple[str, tuple[Object, ...]]] = {
    kinds.NODE: ("node", NODE_VARIANTS),
    kinds.POD: ("launcher", POD_VARIANTS),
    kinds.VM: ("vm", VM_VARIANTS),
}


@dataclass(frozen=True)
class Put:
    """Write an object in one of its variants; a new one where there is none."""

    resource: Resource
    name: str
    variant: int

    async def do(self, server: ApiServer, leader: Leader, ingest: Ingest) -> None:
        """Write it."""
        file, variants = WATCHED[self.resource]
        put(server, self.resource, file, self.name, **variants[self.variant % len(variants)])


@dataclass(frozen=True)
class Delete:
    """Take an object out, if it is there."""

    resource: Resource
    name: str

    async def do(self, server: ApiServer, leader: Leader, ingest: Ingest) -> None:
        """Remove it."""
        key = f"tenant-a/{self.name}" if self.resource.namespaced else self.name
        if server.store.get(self.resource, key):
            server.store.remove(self.resource, key)


@dataclass(frozen=True)
class Fault:
    """Cut every watch; forget the history; go to and fro in time; a new leader; nothing for a while."""

    name: str

    async def do(self, server: ApiServer, leader: Leader, ingest: Ingest) -> None:
        """Let it happen."""
        match self.name:
            case "cut":
                server.store.cut()
            case "compact":
                server.store.compact()
            case "miss":
                # Deletes that no watch ever tells (C22): made while it is down, forgotten before it is back.
                server.store.cut()
                for resource in WATCHED:
                    for key in sorted(server.store.collection(resource).objects)[:1]:
                        server.store.remove(resource, key)
                server.store.compact()
            case "withdraw":
                server.withdraw(kinds.VM)
            case "serve":
                server.serve(kinds.VM)
            case "epoch":
                await leader.begin()
            case "wait":
                await time_passes(7)
            case _:
                await settled(server, leader, ingest)


@dataclass(frozen=True)
class Rewind:
    """Bring the API server back from a backup taken before these steps (T12)."""

    steps: tuple[Put | Delete, ...]

    async def do(self, server: ApiServer, leader: Leader, ingest: Ingest) -> None:
        """Take the backup, go on, and come back from it."""
        backup = server.store.backup()
        for step in self.steps:
            await step.do(server, leader, ingest)
        await settled(server, leader, ingest)
        server.serve(kinds.VM)
        server.store.restore(backup)
        # A server that has gone past the known versions again before anybody looks can't be told from one that
        # never went back; etcd's own remedy is to restore with bumped revisions.
        await until(
            lambda: all(int(w.version or 0) <= backup.version for w in ingest.watching.values()), "all have looked"
        )
        await settled(server, leader, ingest)


RESOURCES = st.sampled_from(sorted(WATCHED, key=lambda resource: resource.plural))
PUTS = st.builds(Put, RESOURCES, st.sampled_from(NAMES), st.integers(0, 3))
DELETES = st.builds(Delete, RESOURCES, st.sampled_from(NAMES))
FAULTS = st.sampled_from(["cut", "compact", "miss", "withdraw", "serve", "epoch", "wait", "settle"]).map(Fault)
REWINDS = st.lists(PUTS | DELETES, min_size=1, max_size=4).map(lambda steps: Rewind(tuple(steps)))


@settings(max_examples=60, deadline=None)
@given(st.lists(PUTS | DELETES | FAULTS | PUTS | DELETES | REWINDS, max_size=25))
def test_the_fold_is_the_world(steps: list[Put | Delete | Fault | Rewind]) -> None:
    """Whatever happens to objects and watches, the folded messages end as the world is (T11, T12, C22, D12)."""

    async def play() -> None:
        server = ApiServer(seed="following")
        async with following(server) as (ingest, leader):
            for step in steps:
                await step.do(server, leader, ingest)
            server.serve(kinds.VM)
            await settled(server, leader, ingest)

    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(play())
