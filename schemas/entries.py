"""The GPU annotation of a VM template, parsed: which entry, which field, what is wrong with it (N2)."""

import re
from functools import lru_cache
from typing import Final

import msgspec

ENTRIES_MAX: Final = 16
COUNT_MAX: Final = 64
TEXT_BYTES_MAX: Final = 8192
TEXTS_KNOWN_MAX: Final = 512
"""So many annotations that were read are remembered: VMs ask for few different things, and each is asked often."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class ClassEntry(msgspec.Struct, frozen=True, gc=False):
    """`count` units of a class; becomes a template claim that lives and dies with the VMI."""

    class_name: str
    count: int


class ClaimEntry(msgspec.Struct, frozen=True, gc=False):
    """A held claim of the same namespace, by name."""

    claim_name: str


class MalformedEntries(Exception):
    """The annotation can't be read: `entry` is its index from 0 (-1: the whole), `field` the field."""

    def __init__(self, entry: int, field: str, problem: str) -> None:
        where = f"entry {entry}, field {field}" if entry >= 0 else "the list"
        super().__init__(f"{where}: {problem}")
        self.entry, self.field, self.problem = entry, field, problem


@lru_cache(TEXTS_KNOWN_MAX)
def parse_entries(text: str) -> tuple[ClassEntry | ClaimEntry, ...]:
    """Read the annotation's JSON list. Raises `MalformedEntries`; never echoes more than a short name."""
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise MalformedEntries(-1, "", f"longer than {TEXT_BYTES_MAX} bytes")
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise MalformedEntries(-1, "", 'is not JSON; write [{"className": "...", "count": 1}]') from None
    if not isinstance(raw, list) or not raw:
        raise MalformedEntries(-1, "", "must be a JSON list with at least one entry")
    if len(raw) > ENTRIES_MAX:
        raise MalformedEntries(-1, "", f"has {len(raw)} entries, at most {ENTRIES_MAX} are allowed")
    entries = tuple(_entry(index, item) for index, item in enumerate(raw))
    _refuse_repeats(entries)
    return entries


def _entry(index: int, item: object) -> ClassEntry | ClaimEntry:
    if not isinstance(item, dict):
        raise MalformedEntries(index, "", "must be an object with className or claimName")
    unknown = sorted(str(key)[:64] for key in item if key not in {"className", "count", "claimName"})
    if unknown:
        raise MalformedEntries(index, unknown[0], "is not known; use className and count, or claimName")
    if ("className" in item) == ("claimName" in item):
        raise MalformedEntries(index, "className", "exactly one of className and claimName must be given")
    if "claimName" in item:
        if "count" in item:
            raise MalformedEntries(index, "count", "belongs to the claim itself; leave it out beside claimName")
        return ClaimEntry(_name(index, "claimName", item["claimName"]))
    count = item.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= COUNT_MAX:
        raise MalformedEntries(index, "count", f"must be a whole number from 1 to {COUNT_MAX}")
    return ClassEntry(_name(index, "className", item["className"]), count)


def _name(index: int, field: str, value: object) -> str:
    if not isinstance(value, str) or not is_object_name(value):
        raise MalformedEntries(index, field, "must be a Kubernetes object name (lower case, digits, '-', '.')")
    return value


def as_kept(text: str) -> str:
    """Return an annotation as views and requests hold it: what is longer than any readable one, cut just beyond that.

    It is malformed either way, and a template's metadata has no other limit than the API server's megabytes.
    """
    return text[: TEXT_BYTES_MAX + 1]


def is_object_name(text: str) -> bool:
    """Say whether an object of Kubernetes can be called that: what can't be one names nothing that is there."""
    return _NAME.fullmatch(text) is not None


def _refuse_repeats(entries: tuple[ClassEntry | ClaimEntry, ...]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(entries):
        key = ("className", entry.class_name) if isinstance(entry, ClassEntry) else ("claimName", entry.claim_name)
        if key in seen:
            raise MalformedEntries(
                index, key[0], f"names {key[1]} again (entry {seen[key]} does); add the counts up there"
            )
        seen[key] = index
