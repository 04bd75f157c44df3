"""A cluster's dump becomes the model world: manifests as `kubectl get -o yaml` prints them, taken at their word.

Objects keep uid, status and times: what runs in the dump runs in the model. Kinds that the model does
not serve are counted and left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.abc import Traversable
from typing import Any

import msgspec
import yaml

from deploy.world.apiserver import ApiServer
from deploy.world.clock import stamp
from deploy.world.manifests import Obj, copied, dig, meta
from schemas import names
from schemas.kinds import GPU_CLAIM, NAMESPACE, POD, Resource

SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)
_HEAD = re.compile(r"^apiVersion:", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadManifest(Exception):
    """A file can't be read as Kubernetes objects; names the file, the place and what is wrong there."""


class Loaded(msgspec.Struct):
    """What was taken: objects per kind, and what was left out, each with why."""

    taken: Counter[str] = msgspec.field(default_factory=Counter)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)


def read_manifests(place: Traversable) -> list[Obj]:
    """Return the objects of a file, or of all manifest files in a directory; lists are taken apart.

    Raises `BadManifest`, `OSError`.
    """
    files = [place] if place.is_file() else sorted(_files(place), key=lambda file: file.name)
    if not files:
        raise BadManifest(f"{place}: no such file, or no {', '.join(SUFFIXES)} file in it")
    return [obj for file in files for obj in _objects(file)]


def _files(place: Traversable) -> Iterator[Traversable]:
    if place.is_dir():
        yield from (file for file in place.iterdir() if file.is_file() and file.name.endswith(SUFFIXES))


def _objects(file: Traversable) -> Iterator[Obj]:
    try:
        text = file.read_text(encoding="utf-8")
        for document in _SEPARATOR.split(text):
            # YAML would silently keep the last of two.
            if len(_HEAD.findall(document)) > 1:
                raise BadManifest(f"{file}: two objects run into each other: put a line `---` between them")
        documents = list(yaml.load_all(text, Loader=_LOADER))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadManifest(f"{file}: not YAML or JSON: {' '.join(str(error).split())}") from None
    for number, document in enumerate(documents, 1):
        yield from _flat(document, f"{file}, document {number}")


def _flat(document: object, where: str) -> Iterator[Obj]:
    if document is None:
        return
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise BadManifest(f"{where}: not a Kubernetes object: it has no kind")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for index, item in enumerate(document["items"]):
            yield from _flat(item, f"{where}, items[{index}]")
        return
    if not dig(document, "metadata", "name"):
        raise BadManifest(f"{where}: {document['kind']} without metadata.name")
    # Dates without quotes are read as dates; objects hold them as text.
    yield msgspec.json.decode(msgspec.json.encode(document))


def load(server: ApiServer, objects: Iterable[Obj], loaded: Loaded, *, now: float) -> None:
    """Put objects into the server's store as they are. What another log decided is left out, and counted."""
    served = {(one.group, one.kind): one for one in server.writes.served.values()}
    for obj in objects:
        group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
        resource = served.get((group, obj["kind"]))
        why = "kind unknown to the model" if resource is None else _of_another_log(resource, obj)
        if resource is None or why:
            loaded.left_out[f"{obj['kind']}: {why}"] += 1
            continue
        _put(server, resource, obj, now)
        loaded.taken[resource.kind] += 1


def _of_another_log(resource: Resource, obj: Obj) -> str:
    """Say why an object can't be taken along: it shows decisions that this world's log does not hold."""
    if resource == GPU_CLAIM:
        return "decided in another log"
    if names.STAMP_ANNOTATION in (meta(obj).get("annotations") or {}):
        return "decided in another log"
    gates = [gate.get("name") for gate in dig(obj, "spec", "schedulingGates") or ()]
    if resource == POD and names.GATE in gates:
        return "waits behind our gate; made anew by its VM"
    return ""


def _put(server: ApiServer, resource: Resource, obj: Obj, now: float) -> None:
    new = {key: value for key, value in copied(obj).items() if key not in {"apiVersion", "kind"}}
    about: dict[str, Any] = meta(new)
    about.setdefault("uid", server.store.new_uid())
    about["creationTimestamp"] = about.get("creationTimestamp") or stamp(now)
    about.setdefault("generation", 1)
    namespace = ""
    if resource.namespaced:
        namespace = about.setdefault("namespace", "default")
        if server.store.get(NAMESPACE, namespace) is None:
            server.writes.seed_namespace(namespace)
    else:
        about.pop("namespace", None)
    if isinstance(new.get("status"), dict):
        # Counts that another log's writer stamped: this world's are behind them, and would be refused.
        new["status"].pop("stamp", None)
    if resource == NAMESPACE:
        new.setdefault("status", {}).setdefault("phase", "Active")
    name = about["name"]
    server.store.put(resource, f"{namespace}/{name}" if namespace else name, new)
