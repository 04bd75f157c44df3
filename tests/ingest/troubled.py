"""An API server and a journal that misbehave on demand, in front of the models that do not."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

from typing_extensions import override

from binder.journal import Unclear
from binder.kube import ApiError, Kube, ListPage, WatchEvent
from binder.memory_journal import MemoryJournal
from schemas.kinds import Resource


class Troubled:
    """The reading half of `Kube` over a server: counts requests, refuses some, hides bookmarks.

    `refusals`: (verb, plural) -> the error to raise, until it is taken out. `pages`: page size, 0 for the asked one.
    """

    def __init__(self, server: Kube) -> None:
        self._server = server
        self.requests: Counter[tuple[str, str]] = Counter()
        self.timeouts: list[tuple[str, int]] = []
        self.refusals: dict[tuple[str, str], ApiError] = {}
        self.pages = 0
        self.bookmarks = True

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - writes are the server's own
        return getattr(self._server, name)

    def _note(self, verb: str, resource: Resource) -> None:
        self.requests[verb, resource.plural] += 1
        if error := self.refusals.get((verb, resource.plural)):
            raise error

    async def list_page(
        self, resource: Resource, *, namespace: str = "", limit: int = 500, continue_token: str = ""
    ) -> ListPage:
        """List, unless refused."""
        self._note("next" if continue_token else "list", resource)
        limit = min(limit, self.pages or limit)
        return await self._server.list_page(resource, namespace=namespace, limit=limit, continue_token=continue_token)

    async def watch(
        self, resource: Resource, *, resource_version: str, timeout_seconds: int, namespace: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Watch, unless refused."""
        self._note("watch", resource)
        self.timeouts.append((resource.plural, timeout_seconds))
        async for event in self._server.watch(
            resource, resource_version=resource_version, timeout_seconds=timeout_seconds, namespace=namespace
        ):
            if self.bookmarks or event.type != "BOOKMARK":
                yield event


class Lossy(MemoryJournal):
    """A journal whose answers get lost: each append is stored, and every second one says it can't tell."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    @override
    async def append(
        self,
        stream: str,
        subject: str,
        body: bytes,
        *,
        message_id: str,
        expected_last: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        stored = await super().append(
            stream, subject, body, message_id=message_id, expected_last=expected_last, headers=headers
        )
        self.asked[message_id] += 1
        if message_id.startswith("leader-") or self.asked[message_id] > 1 or len(self.asked) % 2:
            return stored
        raise Unclear("the answer was lost")
