"""The parts put together: each role with what it needs, alone in a process or all in one.

Binder, ingest, projector and accounting each work under a Lease of their own, so that roles can be spread
over processes and replicas as one likes; webhooks answer in every replica.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from binder.anchor import Anchor
from binder.election import Election
from binder.follower import Follower
from binder.journal import Unavailable, Unclear
from binder.kube import Kube
from binder.service import Binder
from binder.shown import in_status
from binder.snapshots import SnapshotStore, StateSnapshots
from binder.together import together
from binder.written import Witness, unwatched
from deploy.role_names import Role
from ingest.classes import read_claim, read_class
from ingest.machines import read_kubevirt, read_pool, read_replica_set, read_vm, read_vmi
from ingest.nodes import read_namespace
from ingest.service import Ingest
from ingest.starts import read_start
from projector.accounting import Accounting
from projector.service import Projector
from schemas import kinds
from schemas.answers import encode_answer
from schemas.names import LEASE_PREFIX
from schemas.streams import ASK_ALIVE, ASK_DRY_RUN
from webhooks.evidence import Readers
from webhooks.metrics import Metrics
from webhooks.service import Webhooks

DRY_RUN_SECONDS = 3.0
ALIVE_SECONDS = 0.5
READERS = Readers(
    read_class,
    read_kubevirt,
    read_claim,
    read_start,
    read_namespace,
    {
        kinds.VM.plural: read_vm,
        kinds.VMI.plural: read_vmi,
        kinds.VM_POOL.plural: read_pool,
        kinds.VMI_REPLICA_SET.plural: read_replica_set,
    },
)


class Questions(Protocol):
    """Request/reply between processes, off the streams; `binder.jetstream.Connection` is one."""

    async def ask(self, subject: str, body: bytes, *, seconds: float) -> bytes:
        """Return somebody's answer."""
        ...

    async def answer(
        self, subject: str, queue: str, reply: Callable[[bytes], Awaitable[bytes]]
    ) -> Callable[[], Awaitable[None]]:
        """Answer questions until the returned function is called."""
        ...

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        ...


class Standing:
    """What of a place stands now: the elections that were entered, and the roles that work.

    `witness` is told what this place's binder writes; `reading`: the log as the projector follows it.
    """

    def __init__(self) -> None:
        self.elections: dict[Role, Election] = {}
        self.witness: Witness = unwatched
        self.binder: Binder | None = None
        self.projector: Projector | None = None
        self.reading: Follower | None = None
        self.webhooks: Webhooks | None = None


class Place(msgspec.Struct, frozen=True):
    """Where the parts run: API server, journal, request/reply, the namespace of settings, leases and anchor."""

    kube: Kube
    journal: SnapshotStore
    questions: Questions
    namespace: str
    identity: str
    program: str
    standing: Standing = msgspec.field(default_factory=Standing)

    def elected(self, role: Role) -> Election:
        """Return the election for a role's Lease."""
        # Records of workloads need no NATS; everyone else can do nothing without.
        able = (lambda: True) if role is Role.ACCOUNTING else (lambda: self.questions.connected)
        name = f"{LEASE_PREFIX}{role}"
        election = Election(self.kube, self.namespace, name, self.identity, gone=self._is_gone, able=able)
        self.standing.elections[role] = election
        return election

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Answer for this process, so that its leases are not taken for those of a dead one."""

        async def answer(_body: bytes) -> bytes:
            return self.identity.encode()

        stop = await self.questions.answer(f"{ASK_ALIVE}.{self.identity}", "self", answer)
        try:
            yield
        finally:
            await stop()

    async def _is_gone(self, holder: str) -> bool:
        """Say whether NATS, which tells of a killed process at once, knows nobody who answers for a holder."""
        try:
            await self.questions.ask(f"{ASK_ALIVE}.{holder}", b"", seconds=ALIVE_SECONDS)
        except Unavailable:
            # Our own connection may be what is away.
            return self.questions.connected
        except Unclear:
            return False
        return False

    def binder(self) -> Binder:
        """Return the binder of this place."""
        snapshots = StateSnapshots(self.journal, self.program)
        anchor = Anchor(self.kube, self.namespace)
        self.standing.binder = Binder(
            self.journal,
            anchor,
            snapshots,
            identity=self.identity,
            program=self.program,
            shown=lambda: in_status(self.kube),
            witness=self.standing.witness,
        )
        return self.standing.binder

    def webhooks(self, metrics: Metrics | None = None) -> Webhooks:
        """Return the webhooks of this place."""
        self.standing.webhooks = Webhooks(
            self.kube, self.journal, AskedDryRuns(self.questions), READERS, metrics=metrics, home=self.namespace
        )
        return self.standing.webhooks


class AskedDryRuns:
    """Puts a dry run to any warm binder by request/reply (T19)."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def ask(self, body: bytes) -> bytes:
        """Return a binder's answer. Raises `Unavailable`, `Unclear`."""
        return await self._questions.ask(ASK_DRY_RUN, body, seconds=DRY_RUN_SECONDS)


async def run_binder(place: Place, binder: Binder) -> None:
    """Follow the log, answer dry runs, lead while elected."""

    async def answer(body: bytes) -> bytes:
        found = binder.answer_dry_run(body)
        return encode_answer(found) if found is not None else b""

    stop = await place.questions.answer(ASK_DRY_RUN, "binders", answer)
    try:
        await together(binder.run, lambda: place.elected(Role.BINDER).lead(binder.lead))
    finally:
        await stop()


async def run_ingest(place: Place) -> None:
    """Watch the API server while elected."""
    await place.elected(Role.INGEST).lead(lambda: Ingest(place.kube, place.journal, place.namespace).run())


async def run_projector(place: Place) -> None:
    """Write what was decided while elected."""

    async def work() -> None:
        snapshots = StateSnapshots(place.journal, place.program)
        follower = Follower(place.journal, *(await snapshots.newest() or ()))
        projector = Projector(place.kube, place.journal, instance=place.identity, home=place.namespace)
        place.standing.projector, place.standing.reading = projector, follower
        try:
            await projector.run(follower)
        finally:
            place.standing.projector = place.standing.reading = None

    await place.elected(Role.PROJECTOR).lead(work)


async def run_accounting(place: Place) -> None:
    """Keep the records of workloads while elected."""
    await place.elected(Role.ACCOUNTING).lead(lambda: Accounting(place.kube).run())
