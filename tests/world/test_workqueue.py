"""The work queue and the cache under it: no key twice at a time, none forgotten, gaps in a watch noticed."""

import asyncio
import itertools

import pytest

from deploy.world.clock import LoopClock
from deploy.world.manifests import meta
from deploy.world.workqueue import Retry, WorkQueue, work
from schemas.kinds import POD, VM, VMI
from tests.world.stage import CARD, later, staged, vm, vmi

pytestmark = pytest.mark.looptime


async def test_a_key_is_worked_on_by_one_worker_and_again_if_asked_meanwhile() -> None:
    """Added three times while it is worked on: once more afterwards, never side by side."""
    queue = WorkQueue(LoopClock())
    running: list[str] = []
    rounds: list[str] = []

    async def reconcile(key: str) -> None:
        assert key not in running
        running.append(key)
        await later(1)
        running.remove(key)
        rounds.append(key)

    workers = [asyncio.ensure_future(work(queue, reconcile)) for _ in range(4)]
    queue.add("a")
    queue.add("b")
    await later(0.5)
    for _ in range(3):
        queue.add("a")
    await later(10)
    assert sorted(rounds) == ["a", "a", "b"]
    assert queue.idle
    for worker in workers:
        worker.cancel()


async def test_a_failing_key_comes_back_ever_later_and_starts_afresh_after_a_success() -> None:
    """5 ms, 10 ms, 20 ms and so on, until it succeeds; then 5 ms again."""
    queue = WorkQueue(LoopClock())
    loop = asyncio.get_running_loop()
    at: list[float] = []

    async def reconcile(_key: str) -> None:
        at.append(loop.time())
        if len(at) != 5:
            raise Retry("not yet")

    worker = asyncio.ensure_future(work(queue, reconcile))
    queue.add("a")
    await later(1)
    queue.add("a")
    await later(0.0251)
    pauses = [round((later - one) * 1000) for one, later in itertools.pairwise(at)]
    assert pauses[:4] == [5, 10, 20, 40]
    assert pauses[5:7] == [5, 10]
    worker.cancel()
    queue.close()


async def test_what_happened_while_a_watch_was_lost_is_noticed() -> None:
    """C22: watches cut, history forgotten: a pod that went meanwhile fails its VMI, a VM that came is started."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VMI, vmi("a", CARD))
        await stage.phase("a", "Scheduling")
        await stage.settle()
        pod = stage.pods("a")[0]
        stage.api.store.cut()
        await stage.delete(POD, meta(pod)["name"])
        await stage.create(VM, vm("b", CARD))
        stage.api.store.compact()
        await stage.phase("a", "Failed")
        await stage.phase("b", "Scheduling")


async def test_a_server_back_from_a_backup_is_believed() -> None:
    """T12: versions go back, VMs made since are unknown again, and those of the backup still start and stop."""
    async with staged() as stage:
        stage.gate_pods()
        await stage.create(VM, vm("a", CARD, strategy="Halted"))
        await stage.word("a", "Stopped")
        await stage.settle()
        backup = stage.api.store.backup()
        await stage.create(VM, vm("b", CARD))
        await stage.phase("b", "Scheduling")
        stage.api.store.restore(backup)
        await stage.settle(5.0)
        assert stage.find(VMI, "b") is None
        await stage.change(VM, "a", {"spec": {"runStrategy": "Always"}})
        await stage.phase("a", "Scheduling")
