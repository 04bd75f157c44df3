"""Leader election by a Kubernetes Lease: who may work now. A courtesy; the log's own fence decides.

As client-go does it, no clock of another machine is believed: a lease counts as expired when it has
not changed for its whole duration on *our* monotonic clock (C63). The holder stops working before
others may start: its renew deadline is shorter than the lease. A holder whose process is known to be
gone is not waited for: that saves most of the time a crash costs. A holder that can't work, cut off from
what the work needs, gives its lease back: it would renew it for ever, and nobody else could work.
"""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from binder.kube import ApiError, Kube, find
from schemas.kinds import LEASE

LEASE_SECONDS = 4
RENEW_DEADLINE_SECONDS = 3.0
RETRY_SECONDS = 0.5
STILL_SECONDS = 1.0
"""How long a lease must have stood unchanged, two renewals, before it is asked whether its holder is gone."""
UNABLE_SECONDS = 5.0
"""How long a holder may be unable to work before it lets go: a server's restart or a lost connection is shorter."""
GIVE_BACK_SECONDS = 2.0
_PAUSE_SECONDS = 0.05
_CONFLICT = 409

_log = structlog.get_logger(__name__)


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    namespace: str
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    spec: _Spec
    api_version: str = LEASE.api_version
    kind: str = LEASE.kind


async def holder_of(kube: Kube, namespace: str, name: str) -> tuple[str, str]:
    """Return who holds a lease and when it was renewed, as it says itself; two '' where nobody does."""
    found = await find(kube, LEASE, namespace, name)
    spec = msgspec.json.decode(found, type=_Lease).spec if found is not None else _Spec()
    return (spec.holder_identity, spec.renew_time or "") if spec.holder_identity else ("", "")


async def _unknown(_holder: str) -> bool:
    return False


class Election:
    """One Lease in one namespace; `identity` must differ between processes.

    `gone` says of a holder whether its process is known to be no more; False where that is not known.
    `able` says whether this process could do the work now.
    """

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_seconds: int = LEASE_SECONDS,
        gone: Callable[[str], Awaitable[bool]] = _unknown,
        able: Callable[[], bool] = lambda: True,
    ) -> None:
        self._kube = kube
        self._namespace, self._name, self._identity = namespace, name, identity
        self._lease_seconds = lease_seconds
        self._gone = gone
        self._able = able
        self._seen: tuple[str, float] = ("", 0.0)
        self._held: _Lease | None = None
        self.leading = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `work` while it is held, give it back; again until cancelled.

        `work` is cancelled when the lease could not be renewed in time, or we were unable for long. Its own end
        gives the lease back for a moment. Its error is raised, and so is one of the renewal that is no server's answer.
        """
        while True:
            await self._acquire()
            self.leading = True
            _log.info("lease acquired", lease=self._name, identity=self._identity)
            try:
                await self._hold(work)
            finally:
                self.leading = False
                await self._give_back()
            await asyncio.sleep(RETRY_SECONDS)

    async def _hold(self, work: Callable[[], Awaitable[None]]) -> None:
        worker = asyncio.ensure_future(work())
        renewal = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait({worker, renewal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (renewal, worker):
                task.cancel()
            results = await asyncio.gather(worker, renewal, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _acquire(self) -> None:
        while True:
            if not self._able():
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                lease = await self._read()
                if lease is None:
                    self._held = await self._create()
                    return
                if await self._is_free(lease):
                    self._held = await self._write(lease, taking=True)
                    return
            except ApiError as error:
                if error.code != _CONFLICT:
                    _log.warning("lease not reachable", lease=self._name, code=error.code, reason=error.reason)
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_free(self, lease: _Lease) -> bool:
        now, holder = asyncio.get_running_loop().time(), lease.spec.holder_identity
        if not holder or holder == self._identity:
            return True
        if self._seen[0] != lease.metadata.resource_version:
            self._seen = (lease.metadata.resource_version, now)
        still = now - self._seen[1]
        if still >= (lease.spec.lease_duration_seconds or self._lease_seconds):
            return True
        return still >= STILL_SECONDS and await self._gone(holder)

    async def _renew(self) -> None:
        """Renew until it fails for longer than the deadline, somebody else holds the lease, or it serves nobody."""
        loop = asyncio.get_running_loop()
        renewed = able = loop.time()
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            able = loop.time() if self._able() else able
            if loop.time() - able >= UNABLE_SECONDS:
                _log.warning("lease let go: this process can't work now", lease=self._name, identity=self._identity)
                return
            try:
                async with asyncio.timeout(max(0.05, renewed + RENEW_DEADLINE_SECONDS - loop.time())):
                    await self._renew_once()
                renewed = loop.time()
            except (ApiError, TimeoutError) as error:
                if isinstance(error, ApiError) and error.code == _CONFLICT and not await self._still_ours():
                    _log.warning("lease lost", lease=self._name, identity=self._identity)
                    return
                if loop.time() - renewed >= RENEW_DEADLINE_SECONDS:
                    _log.warning("lease not renewed in time", lease=self._name, identity=self._identity)
                    return

    async def _renew_once(self) -> None:
        if self._held is None:
            raise RuntimeError("no lease is held")
        self._held = await self._write(self._held, taking=False)

    async def _still_ours(self) -> bool:
        """Read the lease after a conflict: somebody may have labelled it, or taken it."""
        try:
            lease = await self._read()
        except ApiError:
            return True
        if lease is None or lease.spec.holder_identity != self._identity:
            return False
        self._held = lease
        return True

    async def _give_back(self) -> None:
        if self._held is None:
            return
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self._free()
        except (ApiError, TimeoutError):
            _log.info("lease not given back, it expires by itself", lease=self._name)
        finally:
            self._held = None

    async def _free(self) -> None:
        while self._held is not None:
            self._held.spec.holder_identity = ""
            self._held.spec.lease_duration_seconds = 1
            try:
                await self._kube.replace(LEASE, self._namespace, self._name, msgspec.json.encode(self._held))
            except ApiError as error:
                # A renewal that was broken off may have landed: then what we hold of the lease is old.
                if error.code != _CONFLICT or not await self._still_ours():
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    async def _read(self) -> _Lease | None:
        found = await find(self._kube, LEASE, self._namespace, self._name)
        return msgspec.json.decode(found, type=_Lease) if found is not None else None

    async def _create(self) -> _Lease:
        now = _now()
        spec = _Spec(self._identity, self._lease_seconds, now, now, 0)
        body = msgspec.json.encode(_Lease(_Metadata(self._name, self._namespace), spec))
        return msgspec.json.decode(await self._kube.create(LEASE, self._namespace, body), type=_Lease)

    async def _write(self, lease: _Lease, *, taking: bool) -> _Lease:
        spec = _Spec(
            self._identity,
            self._lease_seconds,
            _now() if taking else lease.spec.acquire_time,
            _now(),
            (lease.spec.lease_transitions or 0) + taking,
        )
        body = msgspec.json.encode(_Lease(lease.metadata, spec))
        return msgspec.json.decode(await self._kube.replace(LEASE, self._namespace, self._name, body), type=_Lease)


def _now() -> str:
    """Return the wall clock as MicroTime: shown to people, never compared."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
