"""A process that watches one namespace and says when each launcher was gated, ungated and bound.

It measures from outside, with a loop of its own, so that a busy emulator does not make the program look
slow. `python -m tests.bench.observer KUBECONFIG NAMESPACE` prints `ready`, then one JSON line for each
pod that was bound; times are the machine's monotonic clock, the same in every process.
"""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from binder.kube import WatchEvent
from binder.kube_client import KubeClient
from schemas.kinds import POD, VMI, Resource

SECONDS = 3600


class Sight(msgspec.Struct):
    """What was seen of one launcher, in seconds; 0 where it was not seen. `vm` is its VMI's name."""

    vm: str
    created: float = 0.0
    gated: float = 0.0
    ungated: float = 0.0
    bound: float = 0.0


class _Owner(msgspec.Struct, frozen=True):
    name: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    owner_references: list[_Owner] = []


class _Gate(msgspec.Struct, frozen=True):
    name: str


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[_Gate] = []


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_Object)


class Sights:
    """What was seen of every launcher so far."""

    def __init__(self) -> None:
        self._vmis: dict[str, float] = {}
        self._pods: dict[str, Sight] = {}

    def see(self, resource: Resource, event: WatchEvent, now: float) -> tuple[str, Sight | None]:
        """Take in one line of a watch; return its version, and the launcher that it shows newly bound."""
        seen = _decoder.decode(event.object)
        name, version = seen.metadata.name, seen.metadata.resource_version
        if event.type == "BOOKMARK":
            return version, None
        if resource is VMI:
            if event.type == "ADDED":
                self._vmis[name] = now
            return version, None
        if event.type == "DELETED":
            self._pods.pop(name, None)
            return version, None
        return version, self._see_pod(name, seen, now)

    def _see_pod(self, name: str, pod: _Object, now: float) -> Sight | None:
        owners = pod.metadata.owner_references
        sight = self._pods.setdefault(name, Sight(owners[0].name if owners else name))
        if pod.spec.scheduling_gates:
            sight.gated = sight.gated or now
        else:
            sight.ungated = sight.ungated or now
        if not pod.spec.node_name or sight.bound:
            return None
        sight.bound, sight.created = now, self._vmis.get(sight.vm, 0.0)
        return sight


class Observer:
    """The observing process, as a benchmark sees it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def next(self) -> Sight:
        """Return the next launcher that was bound. Raises RuntimeError where the observer has ended."""
        return msgspec.json.decode(await self._line(), type=Sight)

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the observer ended before its time; what it said stands above")
        return line

    async def bound(self, count: int, seconds: float) -> list[Sight]:
        """Wait for so many bound launchers. Raises TimeoutError that says how many came."""
        sights: list[Sight] = []
        try:
            async with asyncio.timeout(seconds):
                while len(sights) < count:
                    sights.append(await self.next())
        except TimeoutError:
            raise TimeoutError(f"{len(sights)} of {count} launchers were bound within {seconds:g} s") from None
        return sights


@asynccontextmanager
async def observing(kubeconfig: Path, namespace: str) -> AsyncIterator[Observer]:
    """Run an observer for the length of a block."""
    argv = (sys.executable, "-m", "tests.bench.observer", str(kubeconfig), namespace)
    process = await asyncio.create_subprocess_exec(*argv, stdout=PIPE, limit=2**20)
    try:
        observer = Observer(process)
        await observer._line()  # noqa: SLF001 - the line that says `ready`
        yield observer
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _watch(kube: KubeClient, resource: Resource, namespace: str, version: str, sights: Sights) -> None:
    """Watch for ever: an API server with too little time ends watches that it takes for slow."""
    while True:
        async for event in kube.watch(resource, namespace=namespace, resource_version=version, timeout_seconds=SECONDS):
            version, sight = sights.see(resource, event, time.monotonic())
            if sight is not None:
                sys.stdout.buffer.write(msgspec.json.encode(sight) + b"\n")
                sys.stdout.buffer.flush()


async def _observe(kubeconfig: str, namespace: str) -> None:
    kube = await KubeClient.connect(kubeconfig=kubeconfig, idle_seconds=SECONDS)
    sights = Sights()
    try:
        versions = {
            one: (await kube.list_page(one, namespace=namespace, limit=1)).resource_version for one in (POD, VMI)
        }
        print("ready", flush=True)
        await asyncio.gather(*(_watch(kube, one, namespace, rv, sights) for one, rv in versions.items()))
    finally:
        await kube.close()


if __name__ == "__main__":
    asyncio.run(_observe(*sys.argv[1:]))
