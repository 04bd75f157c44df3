"""Ingest as a whole: every kind followed side by side, so that one that fails does not stop the others.

Runs where its Lease is held. Stateless: a restart begins new sessions (T11).
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import structlog
from msgspec.structs import replace

from binder.journal import Unavailable, Unclear
from binder.kube import Kube
from ingest.backoff import Backoff
from ingest.credit import IN_FLIGHT_MAX, Credit
from ingest.digest_key import DigestKey
from ingest.last_known import Recalling
from ingest.leader import Leader
from ingest.marks import EVERY_S, Marks
from ingest.outlet import Outlet
from ingest.sources import Source, licences, watched
from ingest.watch import UNSERVED_S, Watching
from schemas.kinds import CONFIGMAP
from schemas.licences import COPIES, SOURCES
from schemas.names import SETTING_LICENCES
from schemas.objects import AnyView, Gone, SettingsView

log = structlog.get_logger()

LICENCE_KINDS = (SOURCES, COPIES)
STEADY_S = 60.0
"""A loop that ran this long before it failed is tried again soon."""


class Ingest:
    """Publishes what the API server shows. `settings_namespace` holds the settings ConfigMap.

    `in_flight`: chunks that may wait for the binder; `marks_s`: how often, at most, unasked progress
    is told; `unserved_s`: how often a kind that is not served is looked for.
    """

    def __init__(
        self,
        kube: Kube,
        journal: Recalling,
        settings_namespace: str,
        *,
        in_flight: int = IN_FLIGHT_MAX,
        marks_s: float = EVERY_S,
        unserved_s: float = UNSERVED_S,
    ) -> None:
        self.credit = Credit(in_flight)
        self._leader = Leader(journal, self.credit, self.ask)
        self.outlet = Outlet(journal, self.credit, self._leader, secrets.token_hex(8))
        self._marks = Marks(self.outlet, marks_s)
        self._key = DigestKey(kube, settings_namespace)
        self._sources = licences(settings_namespace, self._key)
        self._home = settings_namespace
        self.watching = {
            source.kind: Watching(source, kube, self.outlet, self._marks, unserved_s=unserved_s, on_rewind=self._rewind)
            for source in (*map(self._noticing, watched(settings_namespace)), *self._sources)
        }

    def _noticing(self, source: Source) -> Source:
        """Have the settings say in which namespace the licences' sources are."""
        if source.kind != CONFIGMAP.plural:
            return source

        def read(raw: msgspec.Raw | bytes) -> AnyView | Gone:
            seen = source.read(raw)
            if isinstance(seen, SettingsView):
                self.watching[SOURCES].move(seen.data.get(SETTING_LICENCES) or self._home)
            return seen

        return replace(source, read=read)

    def ask(self) -> None:
        """Ask every kind for progress newer than now, soon: a new epoch began (T11)."""
        self._marks.drop()
        for watching in self.watching.values():
            watching.ask()

    def _rewind(self) -> None:
        """List every kind anew: one showed that the API server came back from a backup (T12)."""
        for watching in self.watching.values():
            watching.rewind()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(_supervised("decisions", self._leader.follow))
            group.create_task(_supervised("progress", self._marks.tell))
            for kind, watching in self.watching.items():
                run = watching.run if kind not in LICENCE_KINDS else partial(self._with_key, watching)
                group.create_task(_supervised(kind, run))

    async def _with_key(self, watching: Watching) -> None:
        """Watch once there is a key to digest values with."""
        await self._key.obtain()
        await watching.run()


async def _supervised(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop again whenever it fails, later each time; say so once per change of failure."""
    backoff, complaint = Backoff(), ""
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await loop()
        except (Unclear, Unavailable) as error:
            log.warning("the streams are away; trying again", loop=name, why=str(error))
            await asyncio.sleep(backoff.next())
        except Exception as error:
            if asyncio.get_running_loop().time() - began > STEADY_S:
                backoff.succeeded()
            if repr(error) != complaint:
                complaint = repr(error)
                log.exception("a loop of ingest failed; starting it again", loop=name)
            await asyncio.sleep(backoff.next())
