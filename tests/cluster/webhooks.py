"""Admission webhooks of a test's own: served over TLS on loopback, known to the API server while the block lasts."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from deploy.child import free_ports
from deploy.world.manifests import Obj
from schemas.kinds import Resource
from tests.cluster.api import Api
from tests.cluster.certificates import Authority

Review = Callable[[Obj], Awaitable[Obj]]
_COLLECTION = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """One webhook in a configuration of its own. `watched`: resource and operations; `namespace` '' for all."""

    name: str
    review: Review
    watched: Sequence[tuple[Resource, Sequence[str]]]
    mutating: bool = False
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path its configuration is created in."""
        return _COLLECTION.format("mutating" if self.mutating else "validating")

    def configuration(self, url: str, authority: bytes) -> dict[str, Any]:
        """Fail closed, ten seconds, asked once."""
        rules = [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "resources": [resource.plural],
                "operations": list(operations),
            }
            for resource, operations in self.watched
        ]
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}} if self.namespace else {}
        webhook = {
            "name": f"{self.name}.example.org",
            "clientConfig": {"url": f"{url}/{self.name}", "caBundle": base64.b64encode(authority).decode()},
            "rules": rules,
            "namespaceSelector": selector,
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {"metadata": {"name": self.name}, "webhooks": [webhook]}


def _handler(review: Review) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            asked = await request.read()
        except ConnectionError:
            # The API server was killed as it asked: nobody is there to answer.
            return web.Response(status=499)
        answer = await review(msgspec.json.decode(asked))
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    return handle


@asynccontextmanager
async def serving(
    api: Api, directory: Path, hooks: Sequence[Served], answering: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Serve the hooks; the block begins once `answering` says that the API server asks them all."""
    authority = Authority.new()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue_files(directory))
    application = web.Application(client_max_size=8 * 2**20)
    for hook in hooks:
        application.router.add_post(f"/{hook.name}", _handler(hook.review))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    (port,) = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    try:
        for hook in hooks:
            await api.create(hook.collection, hook.configuration(f"https://127.0.0.1:{port}", authority.pem))
        end = asyncio.get_running_loop().time() + _WAIT_SECONDS
        while not await answering():
            assert asyncio.get_running_loop().time() < end, "the API server never asked the webhooks"
            await asyncio.sleep(0.05)
        yield
    finally:
        for hook in hooks:
            if await api.find(f"{hook.collection}/{hook.name}") is not None:
                await api.delete(f"{hook.collection}/{hook.name}")
        await runner.cleanup()
        await cut_off(port)


async def cut_off(port: int) -> None:
    """End what is still connected to a server that has stopped, and wait until each end is closed.

    Python 3.11 forgets a connection that comes while a server closes: it would be told of as unclosed, in another test.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_WAIT_SECONDS):
        while ends := [each for each in list(vars(loop)["_transports"].values()) if _leads_to(each, port)]:
            for each in ends:
                each.abort()
            await asyncio.sleep(0)


def _leads_to(transport: asyncio.Transport, port: int) -> bool:
    ends = [transport.get_extra_info(end) or ("", 0) for end in ("sockname", "peername")]
    return vars(transport)["_sock"] is not None and any(end[1] == port for end in ends)


def patching(operations: Sequence[Mapping[str, Any]]) -> Review:
    """A review that patches every object it is asked about."""

    async def review(asked: Obj) -> Obj:
        patch = base64.b64encode(msgspec.json.encode(operations)).decode()
        answer = {"uid": asked["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}

    return review
