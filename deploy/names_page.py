"""The published page of names: everything others must agree with us on, as Markdown and as JSON (N1).

Titles of groups, and what a name is for, are the comments of `schemas/names.py`; names of other
projects that we only read are published too.
"""

import inspect
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from schemas import admission, kinds, names, reasons, streams

PAGE_VERSION = 1


class Group(msgspec.Struct, frozen=True):
    """Names that belong together, under the comment that stands above them."""

    title: str
    names: dict[str, str]


def groups() -> tuple[Group, ...]:
    """Read the groups of `schemas/names.py` in its order. Raises ValueError for a name outside any group."""
    found: list[Group] = []
    comment: list[str] = []
    for line in inspect.getsource(names).splitlines():
        if line.startswith("# "):
            comment.append(line.removeprefix("# "))
            continue
        name = line.split(":", 1)[0]
        if name.isidentifier() and name.isupper():
            if comment:
                found.append(Group(" ".join(comment), {}))
                comment = []
            if not found:
                if name == "DOMAIN":
                    continue
                msg = f"schemas/names.py: put a comment above {name} that says what its group is about"
                raise ValueError(msg)
            found[-1].names[name] = getattr(names, name)
    return tuple(found)


def published() -> tuple[Group, ...]:
    """Return all groups of the page: ours, and what stands in the API server's admission under our names."""
    return (*groups(), _at_the_api_server())


def _at_the_api_server() -> Group:
    """What stands in the API server's admission under our names: backups and other policies leave it out by them."""
    told = {
        name: value
        for name, value in vars(admission).items()
        if name.isupper() and isinstance(value, str) and value.endswith(f"gpubinder.{names.DOMAIN}")
    }
    title = (
        "In the API server's admission: both configurations by one name, webhooks, what policies' names end in, a verb"
    )
    return Group(title, {**told, "PLATFORM_VERB": admission.PLATFORM_VERB})


def _resources() -> list[kinds.Resource]:
    found = (value for module in (kinds, admission) for value in vars(module).values())
    return [value for value in found if isinstance(value, kinds.Resource)]


def _reasons() -> dict[str, type[StrEnum]]:
    listed = {name: value for name, value in vars(reasons).items() if isinstance(value, type)}
    return {name: value for name, value in listed.items() if issubclass(value, StrEnum) and value is not StrEnum}


def _subjects() -> dict[str, str]:
    return {name: value for name, value in vars(streams).items() if isinstance(value, str) and "gpubinder." in value}


def names_json() -> str:
    """Return the names as one JSON document, for charts and API servers that must agree."""
    document: dict[str, Any] = {
        "version": PAGE_VERSION,
        "domain": names.DOMAIN,
        "groups": [msgspec.to_builtins(group) for group in published()],
        "kinds": [msgspec.to_builtins(resource) for resource in _resources()],
        "streams": [msgspec.to_builtins(stream) for stream in streams.STREAMS],
        "subjects": _subjects(),
        "reasons": {name: [member.value for member in members] for name, members in _reasons().items()},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def names_page() -> str:
    """Return the same as a page to read."""
    parts = [
        "# Names\n",
        "Every name that gpubinder shares with charts, policies and other programs, drawn from `schemas/`.\n",
        "[`names.json`](names.json) holds the same for machines.\n",
    ]
    for group in published():
        rows = [(_code(name), _code(value)) for name, value in group.names.items()]
        parts += [f"## {group.title.removesuffix('.')}\n", _table(("name", "value"), rows)]
    kind_rows = [
        (_code(r.kind), _code(r.api_version), _code(r.plural), "namespaced" if r.namespaced else "cluster")
        for r in _resources()
    ]
    parts += ["## Kinds read, written or guarded\n", _table(("kind", "version", "plural", "scope"), kind_rows)]
    stream_rows = [(_code(stream.name), ", ".join(map(_code, stream.subjects))) for stream in streams.STREAMS]
    parts += ["## Streams\n", _table(("stream", "subjects"), stream_rows)]
    subject_rows = [(_code(name), _code(subject)) for name, subject in _subjects().items()]
    parts += ["## Subjects\n", _table(("name", "subject"), subject_rows)]
    for name, members in _reasons().items():
        reason_rows = [(_code(member.value),) for member in members]
        about = (members.__doc__ or "").split("\n")[0]
        parts += [f"## Reasons: {name}\n", about + "\n", _table(("reason",), reason_rows)]
    return "\n".join(parts)
