"""The stream topology: names, subjects and settings of EVENTS, DECISIONS and SNAPSHOTS.

`adopt` creates them with the installer's credentials; `run` only checks them (T4, T8).
"""

import msgspec

EVENTS = "GPUBINDER_EVENTS"
DECISIONS = "GPUBINDER_DECISIONS"
SNAPSHOTS = "GPUBINDER_SNAPSHOTS"

# EVENTS subjects: the last token of `watch` is the kind's plural, of `request` the object asked about.
EVENTS_WATCH = "gpubinder.events.watch"
EVENTS_REQUEST = "gpubinder.events.request"
EVENTS_OUTCOME = "gpubinder.events.outcome"
EVENTS_TICK = "gpubinder.events.tick"
EVENTS_CONTINUE = "gpubinder.events.continue"
EVENTS_COMMAND = "gpubinder.events.command"

DECISIONS_GENESIS = "gpubinder.decisions.genesis"
DECISIONS_EPOCH = "gpubinder.decisions.epoch"
DECISIONS_FRAME = "gpubinder.decisions.frame"
DECISIONS_VOID = "gpubinder.decisions.void"

SNAPSHOT_CHUNK = "gpubinder.snapshots.chunk"
SNAPSHOT_MANIFEST = "gpubinder.snapshots.manifest"

# Core NATS request/reply, off the streams: dry runs (T19).
ASK_DRY_RUN = "gpubinder.ask.dryrun"
ASK_ALIVE = "gpubinder.ask.alive"
"""With the name of a process behind it: answered by that process alone, for as long as it lives."""

MESSAGE_BYTES_MAX = 3_500_000
"""Largest body of one message; the server's max_payload (4 MB) leaves room for headers (T5)."""


class StreamSpec(msgspec.Struct, frozen=True):
    """How one stream must stand. `duplicate_window_s` in seconds; `max_bytes` -1 means the store's limit."""

    name: str
    subjects: tuple[str, ...]
    deny_delete: bool
    deny_purge: bool
    discard_new: bool
    allow_atomic: bool
    duplicate_window_s: int
    max_msg_size: int
    max_bytes: int = -1


def _log(name: str, subject: str, duplicate_window_s: int) -> StreamSpec:
    """Return a stream that never loses anything: full, it refuses (T8)."""
    return StreamSpec(
        name=name,
        subjects=(subject,),
        deny_delete=True,
        deny_purge=True,
        discard_new=True,
        allow_atomic=True,
        duplicate_window_s=duplicate_window_s,
        max_msg_size=MESSAGE_BYTES_MAX,
    )


STREAMS = (
    _log(EVENTS, "gpubinder.events.>", 3600),
    _log(DECISIONS, "gpubinder.decisions.>", 120),
    # A cache: old snapshots are removed.
    StreamSpec(
        name=SNAPSHOTS,
        subjects=("gpubinder.snapshots.>",),
        deny_delete=False,
        deny_purge=False,
        discard_new=False,
        allow_atomic=True,
        duplicate_window_s=120,
        max_msg_size=1_000_000,
    ),
)

STORE_SHARES = {EVENTS: 65, DECISIONS: 25}
"""Hundredths of a store that each log may fill: inputs are longer than what follows from them; the rest is for
snapshots, which are few and removed by who makes them."""


def shares(store_bytes: int) -> dict[str, int]:
    """Return how many bytes each log may hold of a store: it is full, and says so, before the disk is."""
    return {stream: store_bytes * share // 100 for stream, share in STORE_SHARES.items()}
