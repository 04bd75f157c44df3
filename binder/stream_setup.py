"""The streams as they must stand: made by the installer, checked by everyone else (T4, T8).

A log in a stream that may be trimmed, that expires or that another stream feeds is no log: each such
setting is compared, and what differs is said with its remedy.
"""

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from binder.journal import Unavailable
from binder.stream_api import Described
from binder.stream_journal import JetStreamJournal
from schemas.streams import MESSAGE_BYTES_MAX, STREAMS, StreamSpec

_HEADROOM = 100_000
_MONITOR_SECONDS = 5.0
_NEARLY = (4, 5)
"""A stream is nearly full at so much of its limit: from there on an alert tells."""


class StreamsDiffer(Exception):
    """The streams or the server are not as they must be; one finding a line, each with its remedy."""

    def __init__(self, findings: Sequence[str]) -> None:
        super().__init__("\n".join(findings))
        self.findings = tuple(findings)


def wanted_config(spec: StreamSpec) -> dict[str, Any]:
    """Return the settings that matter of one stream, as JetStream spells them (durations in nanoseconds)."""
    return {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "storage": "file",
        "retention": "limits",
        "discard": "new" if spec.discard_new else "old",
        "deny_delete": spec.deny_delete,
        "deny_purge": spec.deny_purge,
        "allow_direct": True,
        "allow_atomic": spec.allow_atomic,
        "allow_rollup_hdrs": False,
        "allow_msg_ttl": False,
        "allow_msg_schedules": False,
        "allow_msg_counter": False,
        "duplicate_window": spec.duplicate_window_s * 1_000_000_000,
        "max_msg_size": spec.max_msg_size,
        "max_bytes": spec.max_bytes,
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "max_age": 0,
        "no_ack": False,
        "sealed": False,
        "mirror": None,
        "sources": None,
        "subject_transform": None,
        "republish": None,
    }


def differences(spec: StreamSpec, stands: Mapping[str, Any], replicas: int) -> list[str]:
    """Return what is wrong with a stream, one sentence a setting; `replicas` is the least it must have."""
    found = []
    for setting, want in wanted_config(spec).items():
        # The server leaves out what is off; where no limit of bytes is asked for, the operator may set one.
        has = stands.get(setting, False if isinstance(want, bool) else None)
        if has != want and not (setting == "max_bytes" and spec.max_bytes < 0):
            found.append(f"stream {spec.name}: {setting} is {has!r}, must be {want!r}: `gpubinder adopt` sets it")
    if stands.get("num_replicas", 1) < replicas:
        found.append(
            f"stream {spec.name}: num_replicas is {stands.get('num_replicas', 1)}, must be {replicas} or more: "
            f"`nats stream edit {spec.name} --replicas {replicas}`"
        )
    return found


async def create_streams(
    journal: JetStreamJournal,
    *,
    replicas: int,
    streams: Sequence[StreamSpec] = STREAMS,
    limits: Mapping[str, int] | None = None,
) -> None:
    """Create the streams, or bring existing ones to their settings; needs the installer's credentials.

    What stands in an existing stream stays. `limits`: bytes by stream, for those whose spec has none. A limit is set
    or raised and never lowered, and none is set that what stands would nearly fill: room is the operator's to take.
    So are copies: `replicas` is the least, and where one stream has more, it keeps them, and a new one gets as many.
    Raises `StreamsDiffer` where the server did not take a setting, and what `binder.stream_api.refusal` makes of a
    refusal.
    """
    standing = {spec.name: await _standing(journal, spec.name) for spec in streams}
    most = max(replicas, *(_copies(described) for described in standing.values() if described is not None), 1)
    for spec in streams:
        config = {key: value for key, value in wanted_config(spec).items() if value is not None}
        limit = (limits or {}).get(spec.name, -1) if spec.max_bytes < 0 else spec.max_bytes
        described = standing[spec.name]
        if described is None:
            made = {**config, "num_replicas": most, "max_bytes": limit}
            await journal.manage(f"STREAM.CREATE.{spec.name}", made, spec.name)
            continue
        if spec.max_bytes < 0:
            limit = _limit(described.config.get("max_bytes", -1), described.state.bytes, limit)
        if differences(spec, described.config, replicas) or described.config.get("max_bytes", -1) != limit:
            copies = max(replicas, _copies(described))
            changed = {**described.config, **config, "num_replicas": copies, "max_bytes": limit}
            await journal.manage(f"STREAM.UPDATE.{spec.name}", changed, spec.name)
    await check_streams(journal, replicas=replicas, streams=streams)


async def _standing(journal: JetStreamJournal, stream: str) -> Described | None:
    try:
        return await journal.manage(f"STREAM.INFO.{stream}", {}, stream)
    except LookupError:
        return None


def _copies(described: Described) -> int:
    return int(described.config.get("num_replicas", 1))


def _limit(stands: int, held: int, wanted: int) -> int:
    """Return the bytes that a stream may hold from now on, -1 for no limit. `held`: bytes in it now."""
    if stands > 0:
        return max(stands, wanted)
    return wanted if held * _NEARLY[1] < wanted * _NEARLY[0] else -1


async def check_streams(
    journal: JetStreamJournal, *, replicas: int = 1, streams: Sequence[StreamSpec] = STREAMS
) -> None:
    """Raise `StreamsDiffer` unless every stream stands as `schemas.streams` says. Changes nothing."""
    found = []
    for spec in streams:
        described = await _standing(journal, spec.name)
        if described is None:
            found.append(
                f"stream {spec.name} does not exist: `gpubinder adopt` creates it; "
                f"if it did before, look at the NATS URL and account first"
            )
            continue
        found += differences(spec, described.config, replicas)
    found += _payload(journal)
    if found:
        raise StreamsDiffer(found)


def check_payload(journal: JetStreamJournal) -> None:
    """Raise `StreamsDiffer` where the server takes no message as long as ours may be; needs no stream."""
    if found := _payload(journal):
        raise StreamsDiffer(found)


def _payload(journal: JetStreamJournal) -> list[str]:
    if journal.payload_max >= MESSAGE_BYTES_MAX + _HEADROOM:
        return []
    return [f"nats-server: max_payload is {journal.payload_max} bytes: set `max_payload: 4MB`"]


def check_sync(monitor_url: str) -> None:
    """Raise `StreamsDiffer` unless the server behind this monitoring URL fsyncs every write.

    Clients cannot ask for it, so it is checked where a monitoring URL is given (http://host:8222).
    Blocks: call it in a thread. Raises `Unavailable` when nobody answers there.
    """
    parts = urlsplit(monitor_url)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port or 8222, timeout=_MONITOR_SECONDS)
    where = f"{parts.hostname}:{parts.port or 8222}/varz"
    try:
        connection.request("GET", "/varz")
        page = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(f"nats-server: no answer from {where} ({type(error).__name__})") from None
    finally:
        connection.close()
    if not page.get("jetstream", {}).get("config", {}).get("sync_always"):
        raise StreamsDiffer(
            [f"nats-server {where}: acknowledges before fsync: set `jetstream {{ sync_interval: always }}`"]
        )
