"""What each part may do in NATS: publish and subscribe permissions as data, from which chart, docs and tests are drawn.

Every part is a user of its own in one account. A part writes the subjects that are its own and reads the streams that
it follows; streams are made, changed, emptied and deleted by the installer alone (T4, T8). Nobody may publish to an
inbox: answers are given with the server's leave, once for each question, so that no part can answer for another.
"""

from enum import StrEnum
from typing import Final

import msgspec

from binder.stream_api import API
from deploy.role_names import Role
from schemas.streams import (
    ASK_ALIVE,
    ASK_DRY_RUN,
    DECISIONS,
    DECISIONS_EPOCH,
    DECISIONS_FRAME,
    DECISIONS_GENESIS,
    DECISIONS_VOID,
    EVENTS,
    EVENTS_COMMAND,
    EVENTS_CONTINUE,
    EVENTS_OUTCOME,
    EVENTS_REQUEST,
    EVENTS_TICK,
    EVENTS_WATCH,
    SNAPSHOT_CHUNK,
    SNAPSHOT_MANIFEST,
    SNAPSHOTS,
    STREAMS,
)

ACCOUNT: Final = "GPUBINDER"
INBOXES: Final = "_INBOX.>"
ANSWERS_SECONDS: Final = 10
"""For how long an answer to a question may be given; questions are waited for less long."""


class Person(StrEnum):
    """Who is no role: the installer's Job, an operator at a terminal, an auditor who only reads."""

    INSTALLER = "installer"
    OPERATOR = "operator"
    AUDITOR = "auditor"


class Permissions(msgspec.Struct, frozen=True):
    """Subjects that a user may publish and subscribe to; `answers`: whether it may answer what it hears."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = (INBOXES,)
    answers: bool = False

    def conf(self) -> str:
        """Return them as nats-server's configuration spells them."""
        answers = f'\n  allow_responses: {{ max: 1, expires: "{ANSWERS_SECONDS}s" }}' if self.answers else ""
        return f"{{\n  publish: {_allow(self.publish)}\n  subscribe: {_allow(self.subscribe)}{answers}\n}}"


def _allow(subjects: tuple[str, ...]) -> str:
    return "{ allow: [\n" + "".join(f'    "{subject}"\n' for subject in subjects) + "  ] }"


INFO: Final = tuple(f"{API}.STREAM.INFO.{spec.name}" for spec in STREAMS)


def _reads(*streams: str) -> tuple[str, ...]:
    """Read streams in order and message by message, each reader with a consumer of its own making."""
    calls = ("STREAM.MSG.GET.{}", "CONSUMER.CREATE.{}.*", "CONSUMER.MSG.NEXT.{}.*", "CONSUMER.DELETE.{}.*")
    return tuple(f"{API}.{call.format(stream)}" for stream in streams for call in calls)


def _role(publish: tuple[str, ...] = (), hears: tuple[str, ...] = ()) -> Permissions:
    """A role asks and tells who is alive, beside its own part."""
    return Permissions((*INFO, f"{ASK_ALIVE}.*", *publish), (INBOXES, f"{ASK_ALIVE}.*", *hears), answers=True)


_READS_ALL: Final = _reads(EVENTS, DECISIONS, SNAPSHOTS)

_BACKS_UP: Final = tuple(
    subject.format(stream)
    for stream in (EVENTS, DECISIONS)
    for subject in (f"{API}.STREAM.SNAPSHOT.{{}}", "$JS.SNAPSHOT.ACK.{}.*")
)
"""Have a stream sent whole, and say that each piece has arrived: what `nats stream backup` does."""

_MANAGES: Final = ("CREATE", "UPDATE", "PURGE", "DELETE")

PERMISSIONS: Final[dict[str, Permissions]] = {
    Role.BINDER: _role(
        (
            *_READS_ALL,
            *(DECISIONS_EPOCH, DECISIONS_FRAME, EVENTS_TICK, EVENTS_CONTINUE, SNAPSHOT_CHUNK, SNAPSHOT_MANIFEST),
            # Snapshots are a cache, and the binder removes its old ones.
            f"{API}.STREAM.PURGE.{SNAPSHOTS}",
        ),
        (ASK_DRY_RUN,),
    ),
    Role.INGEST: _role((*_reads(DECISIONS), f"{API}.STREAM.MSG.GET.{EVENTS}", f"{EVENTS_WATCH}.*")),
    Role.PROJECTOR: _role((*_READS_ALL, EVENTS_OUTCOME)),
    Role.WEBHOOKS: _role((*_reads(DECISIONS), f"{EVENTS_REQUEST}.*", ASK_DRY_RUN)),
    Role.ACCOUNTING: _role(),
    Person.INSTALLER: Permissions(
        (
            *_READS_ALL,
            *(
                f"{API}.STREAM.{call}.{spec.name}"
                for call in ("CREATE", "UPDATE", "INFO", "PURGE", "DELETE")
                for spec in STREAMS
            ),
            DECISIONS_GENESIS,
            # What `nats stream edit` asks before anything else.
            f"{API}.INFO",
        )
    ),
    Person.OPERATOR: Permissions((*INFO, *_READS_ALL, EVENTS_COMMAND, DECISIONS_VOID)),
    Person.AUDITOR: Permissions((*INFO, *_READS_ALL, *_BACKS_UP)),
}
"""What each user of the account may do."""
