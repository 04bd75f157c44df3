"""Small things that the tests of the model server share: objects, a webhook, a clock that stands still."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from schemas.kinds import CONFIGMAP

Object = dict[str, Any]
PLACE = (CONFIGMAP, "default")


def config_map(name: str, **metadata: object) -> bytes:
    """A ConfigMap without content."""
    meta = {"name": name, **metadata}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def read(body: bytes | msgspec.Raw) -> Object:
    """Read an object."""
    found: Object = msgspec.json.decode(body)
    return found


class Webhook:
    """Notes the requests it is asked about and gives one answer to all."""

    def __init__(self, **response: object) -> None:
        self.requests: list[Object] = []
        self._response = {"allowed": True, **response}

    async def review(self, review: Object) -> Object:
        """Note the request and answer."""
        self.requests.append(review["request"])
        return {"response": self._response | {"uid": review["request"]["uid"]}}


def labelling(key: str) -> Webhook:
    """A webhook that sets one label, by a patch as the API server takes it."""
    patch = [{"op": "add", "path": "/metadata/labels", "value": {key: "set"}}]
    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return Webhook(patchType="JSONPatch", patch=encoded)


class Still:
    """A clock that shows one hour for ever."""

    def now(self) -> float:
        """Return that hour."""
        return 1_700_000_000.0

    async def sleep(self, seconds: float) -> None:
        """Give way, whatever was asked for."""
        await asyncio.sleep(0)


async def everything(events: AsyncIterator[Any]) -> list[Any]:
    """Return what a watch says up to its end."""
    return [event async for event in events]
