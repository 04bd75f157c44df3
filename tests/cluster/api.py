"""The tests' own eyes and hands on an API server: JSON by path, independent of the client under test."""

import asyncio
import json
import ssl
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from multidict import CIMultiDict

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Refused(Exception):
    """The server answered with a code of 400 or more; `status` is the Status object it sent."""

    def __init__(self, code: int, status: Object) -> None:
        super().__init__(f"{code} {status.get('reason')}: {status.get('message')}")
        self.code = code
        self.status = status


class Api:
    """`async with Api(kubeconfig) as api:` one user's connection. Paths begin with /api or /apis."""

    def __init__(self, kubeconfig: Path, *, posing_as: str = "", groups: Sequence[str] = ()) -> None:
        """`posing_as`, `groups`: whom an administrator impersonates."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        self._headers = CIMultiDict({"Authorization": f"Bearer {config['users'][0]['user']['token']}"})
        if posing_as:
            self._headers.add("Impersonate-User", posing_as)
        for group in groups:
            self._headers.add("Impersonate-Group", group)
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(self._server, headers=self._headers, connector=connector)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def _send(
        self, method: str, path: str, query: dict[str, str], body: object = None, content: str = "application/json"
    ) -> Object:
        assert self._session is not None, "use it as `async with Api(...)`"
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content}
        async with self._session.request(method, path, data=data, headers=headers, params=query) as answer:
            document: Object = await answer.json(content_type=None)
            if answer.status >= 400:
                raise Refused(answer.status, document)
            return document

    async def get(self, path: str, **query: str) -> Object:
        """Read an object or a list."""
        return await self._send("GET", path, query)

    async def find(self, path: str, *, allow: int = 404) -> Object | None:
        """Read an object, or None when it does not exist (when the answer is the code `allow`)."""
        try:
            return await self.get(path)
        except Refused as refused:
            if refused.code == allow:
                return None
            raise

    async def create(self, collection: str, body: Object, **query: str) -> Object:
        """Create an object in a collection, e.g. /api/v1/namespaces/a/pods."""
        return await self._send("POST", collection, query, body)

    async def replace(self, path: str, body: Object, **query: str) -> Object:
        """Update an object (or its /status)."""
        return await self._send("PUT", path, query, body)

    async def patch(self, path: str, body: object, *, content: str = MERGE, **query: str) -> Object:
        """Patch an object (or its /status): a merge patch unless `content` says otherwise."""
        return await self._send("PATCH", path, query, body, content)

    async def delete(self, path: str, **query: str) -> Object:
        """Delete an object; `gracePeriodSeconds="0"` for a bound pod, since no kubelet ends it."""
        return await self._send("DELETE", path, query)

    async def watch(self, path: str, resource_version: str, seconds: int = 30) -> AsyncGenerator[Object, None]:
        """Yield watch events {type, object}; an ERROR line is raised as Refused."""
        assert self._session is not None, "use it as `async with Api(...)`"
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=timeout) as answer:
            if answer.status >= 400:
                raise Refused(answer.status, await answer.json(content_type=None))
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"]["code"], event["object"])
                yield event

    async def until(
        self, path: str, holds: Callable[[Object | None], bool], seconds: float = 120.0, *, allow: int = 404
    ) -> Object | None:
        """Poll an object until `holds`; None while the answer is `allow`. TimeoutError shows its last state."""
        deadline = time.monotonic() + seconds
        while True:
            found = await self.find(path, allow=allow)
            if holds(found):
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} after {seconds:g} s: {json.dumps(found, indent=1)}")
            await asyncio.sleep(0.02)
