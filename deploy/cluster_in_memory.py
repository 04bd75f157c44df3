"""A whole cluster in memory: the model API server with KubeVirt, a scheduler and a collector, filled from a dump.

The webhooks are registered as the configuration object says that a real API server should call them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

from deploy.world.admission import Hook
from deploy.world.apiserver import ApiServer
from deploy.world.clock import WallClock
from deploy.world.collector import Collector
from deploy.world.dump import Loaded, load
from deploy.world.kubevirt import RESOURCES, KubeVirt
from deploy.world.manifests import Obj, decode, dig, encode, key_of
from deploy.world.own_kinds import install
from deploy.world.scheduler import Scheduler
from deploy.world.virt_names import CONTROLLER_ACCOUNT, CONTROLLER_REVISION, SECRET, account
from deploy.world.virt_webhooks import VirtApi
from schemas.admission import POD_WEBHOOK, START_WEBHOOK, VMI_WEBHOOK
from schemas.kinds import KUBEVIRT, VM, VMI
from schemas.names import POLICY_ANNOTATION, POLICY_REFUSE
from webhooks.configuration import webhook_configuration
from webhooks.service import Webhooks
from webhooks.starts import UNDER_REFUSE, start_webhook

Part = Coroutine[Any, Any, None]
ONE_BY_ONE_MAX = 60
"""So many VMs are started in the order of the dump, each when the one before it has its answer."""
_WORKERS = 16
IN_PROCESS = "https://in-process"


def _is_under_refuse(request: Obj) -> bool:
    return (dig(request, "object", "metadata", "annotations") or {}).get(POLICY_ANNOTATION) == POLICY_REFUSE


CONDITIONS = {UNDER_REFUSE: _is_under_refuse}
"""The match conditions of our webhooks, which the real server evaluates as CEL, by name."""


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

    def register(self, webhooks: Webhooks) -> None:
        """Have the API server ask the webhooks, without a network between them."""
        reviews = {
            VMI_WEBHOOK: webhooks.review_vmi,
            POD_WEBHOOK: webhooks.review_pod,
            START_WEBHOOK: webhooks.review_start,
        }
        for one in (*webhook_configuration(IN_PROCESS, b"")["webhooks"], start_webhook(IN_PROCESS, b"")):
            self.api.admit(hook_of(one, reviews[one["name"]]))


def hook_of(one: Obj, answer: Callable[[bytes], Awaitable[bytes]]) -> Hook:
    """Return a webhook of the configuration object as the server asks it; `answer` takes and gives a review's bytes."""
    (rule,) = one["rules"]
    selected: Obj = one["objectSelector"]["matchLabels"]
    conditions: list[Obj] = one.get("matchConditions", [])

    async def review(asked: Obj) -> Obj:
        return decode(await answer(encode(asked)))

    def concerns(request: Obj) -> bool:
        labels = dig(request, "object", "metadata", "labels") or {}
        selects = all(labels.get(name) == value for name, value in selected.items())
        return selects and all(CONDITIONS[condition["name"]](request) for condition in conditions)

    places = [f"{plural}.{group}" if group else plural for group in rule["apiGroups"] for plural in rule["resources"]]
    return Hook(
        name=one["name"],
        review=review,
        resources=tuple(places),
        operations=tuple(rule["operations"]),
        # Of the two kinds, only mutating webhooks say when they are asked again.
        mutating="reinvocationPolicy" in one,
        fail_closed=one["failurePolicy"] == "Fail",
        reinvoke=one.get("reinvocationPolicy") == "IfNeeded",
        when=concerns,
    )


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
