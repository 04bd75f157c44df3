"""A whole cluster in memory: the model API server with KubeVirt, a scheduler and a collector, filled from a dump.

The webhooks are registered as the configuration object says that a real API server should call them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

from deploy.asked_in_memory import DOORS, entries, hook_of, path_of
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from deploy.world.collector import Collector
from deploy.world.dump import Loaded, load
from deploy.world.kubevirt import RESOURCES, KubeVirt
from deploy.world.manifests import Obj, key_of
from deploy.world.own_kinds import install
from deploy.world.scheduler import Scheduler
from deploy.world.virt_names import CONTROLLER_ACCOUNT, CONTROLLER_REVISION, SECRET, account
from deploy.world.virt_webhooks import VirtApi
from schemas.kinds import KUBEVIRT, VM, VMI
from webhooks.service import Webhooks

Part = Coroutine[Any, Any, None]
ONE_BY_ONE_MAX = 60
"""So many VMs are started in the order of the dump, each when the one before it has its answer."""
_WORKERS = 16


class Cluster:
    """The model cluster of a dump. `starting`: VMs to be created once everything runs, in the dump's order."""

    def __init__(self, objects: Iterable[Obj]) -> None:
        self._clock = WallClock()
        self.api = ApiServer(clock=self._clock, seed="demo")
        for resource in (*RESOURCES, SECRET, CONTROLLER_REVISION):
            self.api.serve(resource)
        install(self.api)
        given = list(objects)
        alive = {key_of(one) for one in given if one["kind"] == VMI.kind}
        fresh = [one for one in given if one["kind"] == VM.kind and key_of(one) not in alive]
        self.starting = fresh if len(fresh) <= ONE_BY_ONE_MAX else []
        self.loaded = Loaded()
        self.load(one for one in given if one not in self.starting)
        keys = self.api.store.collection(KUBEVIRT).objects
        home = next((key.partition("/")[0] for key in keys), "kubevirt")
        self._kubevirt = KubeVirt(
            self.api.as_user(account(home, CONTROLLER_ACCOUNT)),
            namespace=home,
            kubelets=self.api.as_user("system:nodes"),
            workers=_WORKERS,
        )
        for hook in VirtApi(self._kubevirt.config, self._clock, namespace=home).hooks():
            self.api.admit(hook)

    def load(self, objects: Iterable[Obj]) -> None:
        """Put objects into the cluster as they are."""
        load(self.api, objects, self.loaded, now=self._clock.now())

    def parts(self) -> list[Part]:
        """Return what acts in the cluster by itself: KubeVirt with its kubelets, the scheduler, the collector."""
        return [self._kubevirt.run(), Scheduler(self.api, clock=self._clock).run(), Collector(self.api).run()]

    def register(self, webhooks: Webhooks, home: str) -> None:
        """Have the API server ask the webhooks, without a network between them. `home`: the program's namespace."""
        for one in entries(home):
            self.api.admit(hook_of(one, _answering(webhooks, path_of(one)), home))


def _answering(webhooks: Webhooks, path: str) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(body: bytes) -> bytes:
        return (await DOORS[path](webhooks, body)).body

    return answer


@asynccontextmanager
async def running(*parts: Part) -> AsyncIterator[Callable[[Part], None]]:
    """Run parts beside the block, and more that are handed in; the failure of one ends the block with it.

    Each part is cancelled once, also where the block fails: a second time would cut its cleaning up short.
    """
    block = asyncio.current_task()
    assert block is not None
    tasks: list[asyncio.Task[None]] = []
    failures: list[BaseException] = []

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not failures:
            failures.append(error)
            block.cancel()

    def also(part: Part) -> None:
        task = asyncio.create_task(part)
        task.add_done_callback(ended)
        tasks.append(task)

    for part in parts:
        also(part)
    try:
        yield also
    except asyncio.CancelledError:
        if not failures:
            raise
        block.uncancel()
    finally:
        for task in reversed(tasks):
            task.remove_done_callback(ended)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise failures[0]
