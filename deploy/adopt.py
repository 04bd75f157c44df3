"""Begin a log on a cluster where nothing of ours stands: streams, identity, genesis, anchor (T4).

An empty stream is never adopted silently: a mistyped URL is an empty stream too. So this is the one
place that makes a log, and it refuses wherever something of ours can be found.
"""

import secrets

import msgspec

from binder.anchor import Anchor
from binder.journal import BatchJournal, Journal
from binder.kube import ApiError, Kube
from binder.logbook import LogReader, append_genesis
from binder.shown import in_annotations, in_status, listed
from binder.snapshots import forget_snapshots
from binder.tip import Tip
from schemas.frames import Genesis, decode_record
from schemas.kinds import GPU_CLAIM, NAMESPACE, POD
from schemas.names import ADMISSION_ANNOTATION, GATE, REFERENCE_LABEL
from schemas.stamping import stamp_text
from schemas.streams import DECISIONS, EVENTS

_NOT_FOUND = 404
_LOST = "; if its decisions are lost, `gpubinder adopt` without --fresh takes over"


class NotFresh(Exception):
    """Something of ours stands already; says what, and what to do instead."""


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Gate(msgspec.Struct, frozen=True):
    name: str


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_gates: tuple[_Gate, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec = _PodSpec()


async def adopt_fresh(kube: Kube, journal: BatchJournal, namespace: str, program: str) -> Tip:
    """Write genesis and anchor of a new log and return its tip; the streams must exist and be empty.

    A genesis of this cluster that stands alone, without an anchor, is where an earlier attempt was cut off:
    it is anchored. Raises `NotFresh` where streams, anchor, claims or gated launchers say that this is not
    the first time.
    """
    await check_fresh(kube, journal, namespace)
    begun = await _begun(kube, journal)
    await forget_snapshots(journal)
    tip = await tip_of(journal, 1 if begun else await append_genesis(journal, await _genesis(kube, program)))
    await Anchor(kube, namespace).create(tip)
    return tip


async def _genesis(kube: Kube, program: str) -> Genesis:
    """Return the beginning of a log. Classes and budgets outlive one: what they show must not be above it (T22)."""
    generation = (await in_status(kube)).stamp.generation + 1
    return Genesis(secrets.token_hex(8), generation, await cluster_id(kube), program)


async def begun_here(kube: Kube, journal: Journal, namespace: str) -> Tip | None:
    """Return the anchored place of this cluster's log if NATS holds it as it was anchored, else None.

    Raises `ApiError`, `NotOurs` where the anchor can't be read.
    """
    anchor = await Anchor(kube, namespace).read()
    if anchor is None or await last_of(journal, DECISIONS) < anchor.sequence:
        return None
    stored = await journal.get(DECISIONS, anchor.sequence)
    return anchor if stored is not None and anchor.holds(stored) else None


async def _begun(kube: Kube, journal: Journal) -> bool:
    """Say whether the log is a genesis of this cluster and nothing else."""
    if await last_of(journal, DECISIONS) != 1 or await last_of(journal, EVENTS) != 0:
        return False
    message = await journal.get(DECISIONS, 1)
    record = decode_record(message.body) if message is not None else None
    return isinstance(record, Genesis) and record.cluster == await cluster_id(kube)


async def last_of(journal: Journal, stream: str) -> int:
    """Return a stream's last sequence, 0 where it is empty or not there."""
    try:
        return (await journal.info(stream)).last
    except LookupError:
        return 0


async def check_fresh(kube: Kube, journal: Journal, namespace: str) -> None:
    """Raise `NotFresh` where something of ours stands, in NATS or in the cluster. Changes nothing."""
    for stream in (DECISIONS, EVENTS):
        held = await last_of(journal, stream)
        if held and not await _begun(kube, journal):
            raise NotFresh(
                f"stream {stream} holds {held} messages: this NATS already serves a log; "
                f"check the NATS URL, or run `gpubinder run`{_LOST if stream == EVENTS else ''}"
            )
    standing = await Anchor(kube, namespace).read()
    if standing is not None:
        raise NotFresh(
            f"an anchor of log {standing.log_id} stands in namespace {namespace}: check the NATS URL; "
            f"if that log is lost, `gpubinder adopt` without --fresh takes over what it decided"
        )
    found = await left_over(kube)
    if found:
        raise NotFresh(
            f"{found} is left of an earlier life: find the log that decided it, "
            "or take it over with `gpubinder adopt` without --fresh"
        )


async def ensure_namespace(kube: Kube, namespace: str) -> None:
    """Make the namespace of settings, leases and anchor where it is missing."""
    try:
        await kube.get(NAMESPACE, "", namespace)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        body = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
        await kube.create(NAMESPACE, "", msgspec.json.encode(body))


async def tip_of(journal: Journal, sequence: int) -> Tip:
    """Return the log's tip at a DECISIONS sequence, every message before it checked."""
    reader = LogReader(journal)
    async for _ in reader.follow(until=sequence):
        pass
    return reader.tip


async def cluster_id(kube: Kube) -> str:
    """Return the cluster's identity: the uid of kube-system, as is the custom."""
    raw = await kube.get(NAMESPACE, "", "kube-system")
    found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    return str(msgspec.json.decode(found["metadata"], type=dict[str, object]).get("uid", ""))


async def left_over(kube: Kube) -> str:
    """Name the first object that keeps a log from being begun here, '' where there is none."""
    async for raw in listed(kube, GPU_CLAIM):
        item = msgspec.json.decode(raw, type=_Object)
        return f"GPUClaim {item.metadata.namespace}/{item.metadata.name}"
    async for raw in listed(kube, POD):
        item = msgspec.json.decode(raw, type=_Object)
        gates = [gate.name for gate in item.spec.scheduling_gates]
        if GATE in gates and REFERENCE_LABEL in item.metadata.labels:
            return f"the gated pod {item.metadata.namespace}/{item.metadata.name}"
        if ADMISSION_ANNOTATION in item.metadata.annotations and REFERENCE_LABEL in item.metadata.labels:
            return f"the launcher {item.metadata.namespace}/{item.metadata.name}, which was let go,"
    # Classes and budgets are the operator's own; copies and records were made by a log, and speak of what it booked.
    shown = await in_annotations(kube)
    return f"{shown.where}, which shows the decision {stamp_text(shown.stamp)}," if shown.where else ""
