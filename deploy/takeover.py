"""Take over a cluster that already runs: what it holds, and the generation that begins by booking that (T4).

The log may be lost altogether, or shorter than its anchor. Nothing is written to the cluster but the anchor: the
binder books what it finds once it leads, and places nothing before.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import msgspec

from binder.adopting import taking_over
from binder.adoption_notes import conflicts, counted, not_booked, overbooked
from binder.anchor import Anchor, NotOurs, prove_anchor
from binder.book import Book
from binder.election import LEASE_SECONDS, holder_of
from binder.evolve import Spent, evolve_decision
from binder.evolve_objects import observe
from binder.journal import BatchJournal, Journal
from binder.kube import Kube
from binder.logbook import LogReader, append_genesis
from binder.newest import inputs_stand
from binder.shown import Shown, anywhere, in_status, listed
from binder.snapshots import forget_snapshots, newest_snapshot
from binder.state import STATE_SCHEMA, empty_state
from binder.step import RULES_VERSION
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import StreamsDiffer, check_streams
from binder.telling import told_decision
from binder.tip import Tip
from deploy.adopt import NotFresh, cluster_id, last_of, left_over, tip_of
from deploy.role_names import ESSENTIAL
from ingest.sources import Source, Unreadable, watched
from schemas import decisions as d
from schemas import kinds
from schemas.frames import Genesis, decode_record
from schemas.names import LEASE_PREFIX
from schemas.objects import Gone, Stamp
from schemas.streams import DECISIONS, EVENTS

LOOKED_AT = (kinds.NODE, kinds.POD, kinds.GPU_CLASS, kinds.GPU_CLAIM, kinds.VM, kinds.VMI)


class NotAdoptable(NotFresh):
    """There is nothing to take over, or it is not ours to take over; says what to do instead."""


class Stands(NotAdoptable):
    """The log stands, as its anchor says: its streams may be looked after, no generation begins. `log_id`: whose."""

    def __init__(self, log_id: str) -> None:
        super().__init__(f"log {log_id} stands, as its anchor says: there is nothing to take over, `gpubinder run`")
        self.log_id = log_id


class Found(msgspec.Struct, frozen=True):
    """What a cluster holds: what will be booked, sentences an operator should read, pods that count by themselves."""

    booked: tuple[d.Decision, ...] = ()
    notes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()

    def told(self) -> tuple[str, ...]:
        """Return what will be booked, a line each."""
        return tuple(told_decision(one) for one in self.booked if not isinstance(one, d.Adopted))


class Beginning(msgspec.Struct, frozen=True):
    """The generation that is about to begin: after which tip, and whether an anchor stands."""

    log_id: str
    generation: int
    tip: Tip
    anchored: bool


async def look(kube: Kube, namespace: str) -> Found:
    """Return what would be booked of the cluster as it stands now. Writes nothing."""
    book, notes = Book(empty_state()), list[str]()
    for source in watched(namespace):
        if source.resource in LOOKED_AT:
            await _read(kube, book, source, notes)
    booked: list[d.Decision] = []
    for decision in taking_over(book, Spent()):
        notes += conflicts(book, decision)
        evolve_decision(book, Stamp(1, 1, len(booked)), decision)
        booked.append(decision)
    notes += [*not_booked(book), *overbooked(book)]
    return Found(tuple(booked), tuple(notes), tuple(counted(book)))


async def _read(kube: Kube, book: Book, source: Source, notes: list[str]) -> None:
    async for raw in listed(kube, source.resource):
        try:
            view = source.view(raw)
        except Unreadable as error:
            notes.append(f"{error}: passed over")
            continue
        if not isinstance(view, Gone):
            observe(book, source.kind, view)


async def beginning(kube: Kube, journal: BatchJournal, namespace: str) -> Beginning:
    """Say which generation would begin. Raises `NotAdoptable`, `BrokenLog`, and what the API server refuses."""
    anchor, unreadable = None, False
    # What speaks of the log first: a leader that writes on meanwhile would seem to have lost what it says.
    try:
        anchor = await Anchor(kube, namespace).read()
    except NotOurs:
        unreadable = True
    shown = await in_status(kube)
    tip = await _log(journal)
    if tip.sequence:
        await _prove_ours(kube, journal, tip, anchor, shown)
    generations = [tip.generation, anchor.generation if anchor is not None else 0]
    # The next generation must beat all that objects of ours show, or its writes are refused (T22).
    generations.append((await anywhere(kube)).stamp.generation)
    # An order that no log ever answered shows no decision, and keeps a fresh log away all the same; so do inputs.
    begun = any(generations) or unreadable or await last_of(journal, EVENTS)
    if not begun and not await left_over(kube):
        raise NotAdoptable("no log, no anchor and nothing that a log decided stands here: say --fresh to begin one")
    log_id = tip.log_id or (anchor.log_id if anchor is not None else "") or secrets.token_hex(8)
    return Beginning(log_id, max(generations) + 1, tip, anchor is not None or unreadable)


async def _prove_ours(kube: Kube, journal: BatchJournal, tip: Tip, anchor: Tip | None, shown: Shown) -> None:
    first = await journal.get(DECISIONS, 1)
    genesis = decode_record(first.body) if first is not None else None
    if not isinstance(genesis, Genesis) or genesis.cluster != await cluster_id(kube):
        raise NotAdoptable(f"NATS holds log {tip.log_id} of another cluster: check the NATS URL")
    if anchor is None:
        return
    if anchor.log_id != tip.log_id:
        raise NotAdoptable(
            f"the anchor names log {anchor.log_id}, NATS holds {tip.log_id}: check the NATS URL and --namespace"
        )
    try:
        await prove_anchor(anchor, tip, journal)
    except NotOurs:
        return
    if await last_of(journal, EVENTS) < tip.covers_to or (tip.covers_to and not await inputs_stand(journal, tip)):
        return
    if not await _reaches_snapshot(journal):
        return
    if not shown.beyond(tip):
        raise Stands(tip.log_id)


async def _reaches_snapshot(journal: BatchJournal) -> bool:
    """Say whether the log holds what the newest snapshot was folded to: if not, decisions are lost that it saw."""
    kept = await newest_snapshot(journal, state=STATE_SCHEMA, rules=RULES_VERSION)
    if kept is None:
        return True
    stored = await journal.get(DECISIONS, kept.manifest.tip.sequence) if kept.manifest.tip.sequence else None
    return stored is not None and kept.manifest.tip.holds(stored)


async def mended(
    journal: JetStreamJournal, make: Callable[[JetStreamJournal], Awaitable[None]], *, dry_run: bool = False
) -> bool:
    """Bring the streams of a log that stands to what they must be; say whether they were not. Raises `StreamsDiffer`.

    A stream of snapshots that is gone, or a setting that somebody changed, is no reason for a generation.
    """
    try:
        await check_streams(journal)
    except StreamsDiffer:
        if not dry_run:
            await make(journal)
        return True
    return False


async def take_over(kube: Kube, journal: BatchJournal, namespace: str, program: str) -> Tip:
    """Begin the generation and anchor it; the streams must exist. Raises as `beginning` does, and where roles run."""
    begun = await beginning(kube, journal, namespace)
    await check_stopped(kube, namespace)
    await forget_snapshots(journal)
    genesis = Genesis(
        begun.log_id,
        begun.generation,
        await cluster_id(kube),
        program,
        adopts=True,
        events_last=await last_of(journal, EVENTS),
    )
    tip = await tip_of(journal, await append_genesis(journal, genesis, begun.tip))
    anchor = Anchor(kube, namespace)
    await (anchor.replace(tip) if begun.anchored else anchor.create(tip))
    return tip


async def _log(journal: Journal) -> Tip:
    last = await last_of(journal, DECISIONS)
    reader = LogReader(journal)
    async for _ in reader.follow(until=last):
        pass
    return reader.tip


async def check_stopped(kube: Kube, namespace: str) -> None:
    """Raise `NotAdoptable` where a role renews its lease: what it holds of the old log would go on beside the new."""
    before = await _leases(kube, namespace)
    if not before:
        return
    await asyncio.sleep(LEASE_SECONDS)
    for role, lease in (await _leases(kube, namespace)).items():
        if before.get(role) != lease:
            raise NotAdoptable(f"the {role} runs, as {lease[0]}: stop every `gpubinder run` of this namespace first")


async def _leases(kube: Kube, namespace: str) -> dict[str, tuple[str, str]]:
    leases = {str(role): await holder_of(kube, namespace, f"{LEASE_PREFIX}{role}") for role in ESSENTIAL}
    return {role: lease for role, lease in leases.items() if lease[0]}
