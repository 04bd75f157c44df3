"""JSON patch and merge patch as the API server applies them.

JSON patch follows RFC 6902 with the two liberties of the server's library: `replace` sets a key that
is missing, and `test` against null holds for a key that is missing (tried on 1.36).
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from deploy.world.manifests import Obj, copied


class PatchFailed(Exception):
    """An operation could not be applied, a `test` included."""


def json_patch(document: Obj, operations: object) -> Obj:
    """Apply the operations in order to `document`, which is changed. Raises PatchFailed, ValueError if malformed."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise ValueError("error decoding patch: a JSON patch is a list of operations")
    holder: Obj = {"": document}
    for one in operations:
        _apply(holder, one)
    result: Obj = holder[""]
    return result


def merge_patch(target: object, patch: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the target after an RFC 7386 merge; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _apply(holder: Obj, operation: Obj) -> None:
    op, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise PatchFailed("an operation without a path")
    # Everything hangs below one key, so that the whole document is no special case.
    parent, last = _walk(holder, ["", *_steps(path)])
    if op == "add":
        _add(parent, last, operation.get("value"))
    elif op == "remove":
        _remove(parent, last)
    elif op == "replace":
        _replace(parent, last, operation.get("value"))
    elif op == "test":
        _test(parent, last, operation.get("value"))
    elif op in ("move", "copy"):
        source, name = _walk(holder, ["", *_steps(str(operation.get("from", "")))])
        value = _read(source, name)
        if op == "move":
            _remove(source, name)
            parent, last = _walk(holder, ["", *_steps(path)])
        _add(parent, last, copied({"": value})[""])
    else:
        raise PatchFailed(f"an operation {op!r}")


def _steps(path: str) -> Iterator[str]:
    for step in path.split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


def _walk(holder: Obj, steps: list[str]) -> tuple[Obj | list[Any], str]:
    at: Any = holder
    for step in steps[:-1]:
        at = _read(at, step)
    if not isinstance(at, dict | list):
        raise PatchFailed("the path leads through a plain value")
    return at, steps[-1]


def _index(items: list[Any], step: str) -> int:
    if not step.isdigit() or int(step) >= len(items):
        raise PatchFailed("no such place in the list")
    return int(step)


def _read(at: object, step: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(at, list):
        return at[_index(at, step)]
    if isinstance(at, dict) and step in at:
        return at[step]
    raise PatchFailed("no such path")


def _add(parent: Obj | list[Any], last: str, value: object) -> None:
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-" or last == str(len(parent)):
        parent.append(value)
    else:
        parent.insert(_index(parent, last), value)


def _remove(parent: Obj | list[Any], last: str) -> None:
    _read(parent, last)
    if isinstance(parent, dict):
        del parent[last]
    else:
        del parent[_index(parent, last)]


def _replace(parent: Obj | list[Any], last: str, value: object) -> None:
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent[_index(parent, last)] = value


def _test(parent: Obj | list[Any], last: str, value: object) -> None:
    found = parent.get(last) if isinstance(parent, dict) else parent[_index(parent, last)]
    # As JSON: in Python `1 == True`.
    if msgspec.json.encode(found, order="sorted") != msgspec.json.encode(value, order="sorted"):
        raise PatchFailed("a test does not hold")
