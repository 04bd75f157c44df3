"""One kind's sessions: list, then watch, and list again when the watch can't go on (T11, T12, C22, D12).

A session is opened before its list, so that nothing is placed while a kind is not followed. It ends
when the watch's version is forgotten (410), when the API server's versions went back, also where only
another kind shows it (T12), and when the kind is not served any more.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from binder.kube import ApiError, Kube, ListPage, WatchEvent
from ingest.backoff import Backoff
from ingest.marks import Marks
from ingest.metadata import read_identity
from ingest.news import News
from ingest.outlet import Outlet
from ingest.patience import Patience
from ingest.reading import Reading
from ingest.sources import Source
from ingest.versions import served
from schemas.events import CHANGES_PER_CHUNK_MAX
from schemas.objects import rv_after

PAGE: Final = 500
WATCH_S: Final = (240, 300)
ASKED_S: Final = 3
"""The API server sends a bookmark two seconds before a watch's deadline: a watch this short has one at once."""

ASKED_ROUNDS_MAX: Final = 3
UNSERVED_S: Final = 5.0
ENDED_S: Final = 1.0
STEADY_S: Final = 30.0
"""A watch that held this long was a good one, however it ended."""

MOVED: Final = "another namespace is watched from now on"
_BOOKMARK: Final = "BOOKMARK"
_GONE, _NOT_FOUND = 410, 404

log = structlog.get_logger()


class _NewSession(Exception):
    """The session can't go on; `rewound`: because the API server's versions went back."""

    def __init__(self, why: str, *, rewound: bool = False) -> None:
        super().__init__(why)
        self.rewound = rewound


class Watching:
    """Follows one kind for ever. `unserved_s`: how often a kind that is not served is looked for.

    `on_rewind` hears of versions that went back: the other kinds' did too, unseen where enough was written since.

    `version` is the resourceVersion up to which everything was published.
    """

    def __init__(
        self,
        source: Source,
        kube: Kube,
        outlet: Outlet,
        marks: Marks,
        *,
        unserved_s: float = UNSERVED_S,
        on_rewind: Callable[[], None] = lambda: None,
    ) -> None:
        self.source = source
        self._versions = source.resource.versions
        self._kind, self._kube = source.kind, kube
        self._outlet = outlet
        self._marks = marks
        self._unserved_s = unserved_s
        self._on_rewind = on_rewind
        self._is_rewound = False
        self.news = News()
        self._session = 0
        self._asks = 0
        self._rounds_left = 0
        self._target = ""
        self._reading: Reading | None = None
        self._wake = asyncio.Event()
        self._moved = False
        self._sessions = Backoff()
        self._lists = Patience(self._kind, "list")
        self._watches = Patience(self._kind, "watch")
        self.version = ""

    def move(self, namespace: str) -> None:
        """Watch another namespace from now on, in a new session."""
        if namespace == self.source.namespace:
            return
        self.source = replace(self.source, namespace=namespace)
        self._moved = True
        self._nudge()

    def ask(self) -> None:
        """Ask for a mark newer than now: a new leader places nothing before it has one of each kind (T11)."""
        self._asks += 1
        self._rounds_left = ASKED_ROUNDS_MAX
        self._target = ""
        self._nudge()

    def rewind(self) -> None:
        """Believe that the API server came back from a backup, and list anew (T12)."""
        self._is_rewound = True
        self._nudge()

    def _nudge(self) -> None:
        """End a pause, or the reading of the present watch."""
        self._wake.set()
        if self._reading is not None:
            self._reading.stop()

    async def run(self) -> None:
        """Hold one session after the other."""
        self.version = self.version or await self._outlet.last_known(self._kind)
        rewound = False
        while True:
            try:
                await self._hold_session(rewound=rewound)
            except _NewSession as end:
                rewound = end.rewound
                log.info("listing anew", kind=self._kind, why=str(end))
                await self._pause(self._sessions.next())

    async def _hold_session(self, *, rewound: bool) -> None:
        self._marks.forget(self._kind)
        self.news.shown.relist()
        self._is_rewound = False
        self._moved = False
        self._session = await self._outlet.open(self._kind, rewound=rewound)
        await self._list(rewound=rewound)
        while True:
            await self._look_first()
            await self._follow()

    async def _list(self, *, rewound: bool) -> None:
        """Publish the list page by page, then say that it is complete: until then the known version stands (T12)."""
        token, version = "", ""
        while not version or token:
            page = await self._page(token)
            if not version and not rewound and rv_after(self.version, page.resource_version):
                raise self._went_back()
            version, token = page.resource_version, page.continue_token
            news = [self.news.of(self.source, WatchEvent("ADDED", item))[0] for item in page.items]
            await self._outlet.changes(self._kind, self._session, self.news.changes(news))
        await self._outlet.synced(self._kind, self._session, version)
        self.news.shown.listed()
        self.version = version

    def _went_back(self) -> _NewSession:
        """Return the end of a session whose server went back in time; the other kinds hear of it once."""
        if not self._is_rewound:
            self._on_rewind()
        return _NewSession("the API server's versions went back", rewound=True)

    async def _page(self, token: str = "", limit: int = PAGE) -> ListPage:
        """Read a page of the list, for as long as it takes. Raises `_NewSession`."""
        while True:
            if self._is_rewound:
                raise self._went_back()
            if self._moved:
                raise _NewSession(MOVED)
            try:
                page = await self._kube.list_page(
                    self.source.resource, namespace=self.source.namespace, limit=limit, continue_token=token
                )
            except ApiError as error:
                if error.code == _NOT_FOUND:
                    await self._until_served()
                    raise _NewSession("the kind is served now") from None
                if error.code == _GONE:
                    raise _NewSession("the list's version was forgotten while it was read") from None
                await self._pause(self._lists.failed(error))
                continue
            self._lists.succeeded()
            return page

    async def _until_served(self) -> None:
        """Wait until the kind is served; say once that it is not, and once more at each `ask` (D12)."""
        asks = -1
        while not await self._is_served():
            if asks != self._asks:
                asks = self._asks
                await self._outlet.not_served(self._kind, self._session)
            await self._pause(self._unserved_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load

    async def _is_served(self) -> bool:
        try:
            found = await served(self._kube, self._versions, self.source.namespace)
        except ApiError as error:
            await self._pause(self._lists.failed(error))
            return False
        self.source = replace(self.source, resource=found or self.source.resource)
        return found is not None

    async def _look_first(self) -> None:
        """See where the API server stands before watching.

        A watch from a version that a restored server has not reached would be silent for ever (T12).
        A list reads with quorum and makes the API server's own cache catch up, so that a bookmark
        beyond it follows soon even where nothing changes.
        """
        asks = -1
        while asks != self._asks:
            asks = self._asks
            newest = (await self._page(limit=1)).resource_version
            if rv_after(self.version, newest):
                raise self._went_back()
        if self._rounds_left:
            self._target = newest
            self._answer()

    async def _follow(self) -> None:
        """Hold one watch until it ends."""
        if self._moved:
            raise _NewSession(MOVED)
        began, asks, seen = asyncio.get_running_loop().time(), self._asks, False
        seconds = ASKED_S if self._rounds_left else random.randint(*WATCH_S)  # noqa: S311 - spreads load
        self._reading = reading = Reading(
            self._kube.watch(
                self.source.resource,
                resource_version=self.version,
                timeout_seconds=seconds,
                namespace=self.source.namespace,
            )
        )
        try:
            while batch := await reading.batch(CHANGES_PER_CHUNK_MAX):
                seen = True
                await self._take(batch)
        finally:
            self._reading = None
            await reading.close()
        if self._moved:
            raise _NewSession(MOVED)
        if seen or asyncio.get_running_loop().time() - began > STEADY_S:
            self._watches.succeeded()
            self._sessions.succeeded()
        if reading.error is not None:
            await self._cut(reading.error)
        elif asks == self._asks and not self._is_rewound:
            await self._ended(seen=seen)

    async def _cut(self, error: ApiError) -> None:
        if error.code == _GONE:
            raise _NewSession("the watch's version was forgotten")
        if error.code == _NOT_FOUND:
            raise _NewSession("the kind is not served")
        await self._pause(self._watches.failed(error))

    async def _ended(self, *, seen: bool) -> None:
        """Go on after the server ended the watch in good order."""
        if self._rounds_left:
            self._rounds_left -= 1
            if not self._rounds_left:
                raise _NewSession("no bookmark came that a new leader could go by")
        elif not seen:
            # A server that ends each watch at once must not be asked without pause.
            await self._pause(ENDED_S)

    async def _take(self, batch: Sequence[WatchEvent]) -> None:
        """Publish what of a batch is news, then say how far this got."""
        news, newest, bookmark = [], self.version, False
        for event in batch:
            if event.type == _BOOKMARK:
                bookmark, version = True, read_identity(event.object).resource_version
            else:
                item, version = self.news.of(self.source, event)
                news.append(item)
            if version and rv_after(newest, version):
                raise self._went_back()
            newest = version or newest
        await self._outlet.changes(self._kind, self._session, self.news.changes(news))
        self.version = newest
        if not self._answer() and bookmark:
            self._marks.note(self._kind, self._session, newest)

    def _answer(self) -> bool:
        """Note the mark that was asked for, if the watch has come that far."""
        if not self._target or rv_after(self._target, self.version):
            return False
        self._target, self._rounds_left = "", 0
        self._marks.note(self._kind, self._session, self.version, asked=True)
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until `ask`."""
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
