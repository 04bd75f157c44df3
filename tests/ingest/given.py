"""Objects for ingest's tests: the files beside this one, as `kubectl get -o yaml` prints them, and changes to them."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from deploy.world.apiserver import ApiServer
from deploy.world.history import Change
from schemas.kinds import Resource

Object = dict[str, Any]
# The uids in the files: of one object per kind, of the VMI and of its launcher.
UID = "0e9a3f7c-{:04}-4000-8000-000000000001"
VMI_UID = "6b1f6a7e-0000-4000-8000-000000000001"
POD_UID = "77a1c000-0000-4000-8000-000000000002"

_FILES = Path(__file__).parent / "objects"


@cache
def _loaded(name: str) -> Object:
    loaded: Object = yaml.safe_load((_FILES / f"{name}.yaml").read_text())
    return loaded


def given(name: str, **changes: object) -> Object:
    """Return the object of a file; `changes` are paths with `__` for dots, `None` removes the field."""
    found = deepcopy(_loaded(name))
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return found


def raw(document: object) -> msgspec.Raw:
    """Return the object as a watch carries it."""
    return msgspec.Raw(msgspec.json.encode(document))


def seen(name: str, **changes: object) -> msgspec.Raw:
    """Return the bytes of `given`."""
    return raw(given(name, **changes))


def put(server: ApiServer, resource: Resource, file: str, name: str, **changes: object) -> Change:
    """Store an object of a file under a name, past admission; the same name keeps its uid."""
    made = given(file, metadata__name=name, **changes)
    namespace = made["metadata"].get("namespace", "")
    key = f"{namespace}/{name}" if namespace else name
    known = server.store.get(resource, key)
    made["metadata"]["uid"] = known.object["metadata"]["uid"] if known else server.store.new_uid()
    return server.store.put(resource, key, made)
