"""Leases: one holder at a time, others when it is gone, and no clock of another machine believed (C63)."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from binder.election import (
    LEASE_SECONDS,
    RENEW_DEADLINE_SECONDS,
    RETRY_SECONDS,
    STILL_SECONDS,
    UNABLE_SECONDS,
    Election,
)
from binder.kube import ApiError, Kube
from deploy.world.apiserver import ApiServer
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.kinds import LEASE, NAMESPACE

pytestmark = pytest.mark.looptime


class Process:
    """A process that takes part in one election. `worked`: when it began and when it stopped to work."""

    def __init__(self, kube: Kube, name: str, gone: Callable[[str], Awaitable[bool]]) -> None:
        self.able = True
        self.election = Election(kube, "system", "lease", name, gone=gone, able=lambda: self.able)
        self.worked: list[float] = []
        self._task = asyncio.create_task(self.election.lead(self._work))

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        self.worked.append(loop.time())
        try:
            await asyncio.Event().wait()
        finally:
            self.worked.append(loop.time())

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When it worked, from and to; the time now where it still does."""
        open_end = [asyncio.get_running_loop().time()] if len(self.worked) % 2 else []
        times = [*self.worked, *open_end]
        return list(zip(times[::2], times[1::2], strict=True))

    async def lasts(self, seconds: float) -> None:
        """Let it live for so long; it must not end by itself meanwhile."""
        ended, _ = await asyncio.wait({self._task}, timeout=seconds)
        assert not ended

    async def end(self) -> None:
        """End in good order."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Gone:
    """Who is known to be gone. `asked`: about whom that was asked."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[str] = []

    async def __call__(self, holder: str) -> bool:
        """Answer."""
        self.asked.append(holder)
        return holder in self.names


async def abandon(api: ApiServer, holder: str, **spec: object) -> float:
    """Let a lease stand that a process took before it was killed; return the time now."""
    held = {"holderIdentity": holder, "leaseDurationSeconds": LEASE_SECONDS, **spec}
    metadata = {"name": "lease", "namespace": "system"}
    body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": held}
    await api.create(LEASE, "system", msgspec.json.encode(body))
    return asyncio.get_running_loop().time()


@pytest.fixture
async def api() -> ApiServer:
    """A server with our namespace."""
    server = ApiServer()
    body = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": {"name": "system"}}
    await server.create(NAMESPACE, "", msgspec.json.encode(body))
    return server


@pytest.mark.parametrize("renewed", ["2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_a_dead_holder_is_waited_for_by_our_own_clock(api: ApiServer, renewed: str) -> None:
    """C63: whatever time the holder wrote, its lease is taken once it stood unchanged for its whole duration."""
    since = await abandon(api, "dead", renewTime=renewed)
    process = Process(api, "next", Gone())
    await process.lasts(2 * LEASE_SECONDS)
    await process.end()

    assert LEASE_SECONDS <= process.worked[0] - since <= LEASE_SECONDS + 2 * RETRY_SECONDS


async def test_a_holder_known_to_be_gone_is_not_waited_for(api: ApiServer) -> None:
    """A killed leader's standby goes on after two renewals that did not come, not after the whole lease."""
    since = await abandon(api, "dead")
    gone = Gone("dead")
    process = Process(api, "next", gone)
    await process.lasts(2 * LEASE_SECONDS)
    await process.end()

    assert STILL_SECONDS <= process.worked[0] - since <= STILL_SECONDS + 2 * RETRY_SECONDS
    assert gone.asked == ["dead"]


async def test_a_holder_that_renews_keeps_its_lease(api: ApiServer) -> None:
    """However often somebody holds it for gone: a lease that changes has a holder, and nobody asks."""
    first, gone = Process(api, "first", Gone()), Gone("first")
    await first.lasts(RETRY_SECONDS)
    second = Process(api, "second", gone)
    await second.lasts(60)

    assert len(first.worked) == 1
    assert not second.worked
    assert not gone.asked
    await first.end()
    await second.lasts(2 * RETRY_SECONDS)
    assert len(second.worked) == 1
    assert first.worked[1] <= second.worked[0] <= first.worked[1] + 2 * RETRY_SECONDS
    await second.end()


async def test_a_holder_that_can_t_renew_stops_before_another_begins(api: ApiServer) -> None:
    """Cut off from the server, the leader stops its work within its deadline, which is shorter than its lease."""
    cut = False

    async def plan(_call: Call) -> Fault | None:
        return Fault(ApiError(503, "ServiceUnavailable", "cut off")) if cut else None

    first = Process(FaultyKube(api, plan), "first", Gone())
    await first.lasts(RETRY_SECONDS)
    second = Process(api, "second", Gone())
    await second.lasts(5)
    cut, since = True, asyncio.get_running_loop().time()
    await second.lasts(3 * LEASE_SECONDS)

    [(_, ended)] = first.spans
    [(began, _)] = second.spans
    assert since < ended <= since + RENEW_DEADLINE_SECONDS + RETRY_SECONDS
    assert ended < began
    await asyncio.gather(first.end(), second.end())


async def test_a_holder_that_can_t_work_lets_go(api: ApiServer) -> None:
    """A leader that can renew and reaches no NATS would hold its lease for ever: it gives it back, and waits."""
    first = Process(api, "first", Gone())
    await first.lasts(RETRY_SECONDS)
    second = Process(api, "second", Gone())
    await second.lasts(UNABLE_SECONDS)
    assert not second.worked
    first.able, since = False, asyncio.get_running_loop().time()
    await second.lasts(2 * UNABLE_SECONDS)

    [(_, ended)] = first.spans
    [(began, _)] = second.spans
    assert since + UNABLE_SECONDS - RETRY_SECONDS <= ended <= since + UNABLE_SECONDS + 2 * RETRY_SECONDS
    assert ended <= began <= ended + 2 * RETRY_SECONDS
    await asyncio.gather(first.end(), second.end())


async def test_who_can_t_work_takes_no_lease(api: ApiServer) -> None:
    """A lease that stands free is taken once its work can be done, and a short disturbance costs none."""
    process = Process(api, "first", Gone())
    process.able = False
    await process.lasts(60)
    assert not process.worked

    process.able = True
    await process.lasts(2 * RETRY_SECONDS)
    process.able = False
    await process.lasts(UNABLE_SECONDS - 2 * RETRY_SECONDS)
    process.able = True
    await process.lasts(60)
    assert len(process.spans) == 1
    await process.end()


async def test_a_renewal_whose_answer_is_lost_costs_nothing(api: ApiServer) -> None:
    """A renewal that landed unheard makes the next one conflict: the lease is read, it is still ours, work goes on."""
    lost = 0

    async def plan(call: Call) -> Fault | None:
        nonlocal lost
        lost += call.verb == "replace"
        return (
            Fault(ApiError(0, "Timeout", "no answer"), lands=True) if call.verb == "replace" and lost % 3 == 0 else None
        )

    process = Process(FaultyKube(api, plan), "first", Gone())
    await process.lasts(60)

    assert lost > 30
    assert len(process.worked) == 1
    await process.end()
