"""The heart alone: events folded and decided a second, in a small and in a large cluster.

`python -m tests.bench.heart` prints a table. A cluster is filled with placed sets; then VMs stop and others
start, each change a message of its own, as a watch in a quiet hour sends them. Beside it: how long the same
messages take to be read from a JetStream and decoded, and how much memory the state holds.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from binder.access import Access
from binder.jetstream import connect
from binder.snapshot import encode_state
from binder.step import step
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.local import LocalNats
from schemas.events import Outcome, Outcomes, decode_event
from schemas.names import CLASS_FINALIZER, GATE
from schemas.objects import AnyView, ClaimView, ClassView, NodeView, PodView, VmiView
from schemas.streams import EVENTS, EVENTS_WATCH
from tests.bench.figures import Figure, beside, table
from tests.binder.scene import Scene, launcher

SMALL, LARGE = (50, 100), (5_000, 50_000)
UNITS = 16
VMS = 1_000
STRETCHES = 10
NAMESPACE = "tenant-a"
ANNOTATION = '[{"className":"l40s","count":1}]'
RESOURCE = "nvidia.com/AD102GL_L40S"


class Cluster:
    """A cluster full of placed sets, with `waiting` more that found no room."""

    def __init__(self, nodes: int, sets: int, *, waiting: int = 0, units: int = UNITS) -> None:
        self.scene = Scene(synced=False, lawful=False)
        self.names = iter(range(10_000_000))
        scene = self.scene
        scene.newer(ClassView("l40s", "", "", resource=RESOURCE, finalizers=(CLASS_FINALIZER,)))
        offered = {RESOURCE: units, "cpu": 256_000, "memory": 1 << 40}
        held = sets // nodes if waiting else units
        for number in range(nodes):
            labels = {"kubernetes.io/hostname": f"node-{number}", "zone": f"z{number % 3}"}
            room = {**offered, RESOURCE: held}
            scene.newer(NodeView(f"node-{number}", "", "", labels=labels, ready=True, allocatable=room))
        vmis = [self.vmi() for _ in range(sets + waiting)]
        pods = []
        for vmi in vmis:
            scene.admit(vmi, f"r-{vmi.name}")
            pods.append(scene.newer(self.pod(vmi)))
            scene.newer(replace(vmi, active_pods={pods[-1].uid: ""}))
        for kind in scene.objects:
            scene.relist(kind)
        scene.settled()
        self.running = [vmi.name for vmi in vmis]
        for name in self.running:
            self.bind(name)
        for start in range(0, len(pods), 200):
            scene.watch("pods", [self._seen("pods", f"{name}-pod") for name in self.running[start : start + 200]])
        scene.settled()

    def vmi(self) -> VmiView:
        """Create a VMI."""
        return self.scene.newer(VmiView(f"vm-{next(self.names)}", "", "", NAMESPACE, gpus=ANNOTATION))

    def pod(self, vmi: VmiView) -> PodView:
        """Return the launcher of a VMI."""
        requests = {RESOURCE: 1, "cpu": 4_000, "memory": 8 << 30}
        return launcher(vmi, f"{vmi.name}-pod", f"r-{vmi.name}", requests)

    def _seen(self, kind: str, name: str) -> AnyView:
        return self.scene.objects[kind][f"{NAMESPACE}/{name}"]

    def bind(self, name: str) -> PodView | None:
        """Pin and bind the launcher of a VM where its set was placed."""
        pod = self._seen("pods", f"{name}-pod")
        gpu_set = self.scene.book.state.sets[f"uid-{name}"]
        if isinstance(pod, PodView) and gpu_set.node:
            gates = tuple(gate for gate in pod.gates if gate != GATE)
            return self.scene.newer(replace(pod, gates=gates, node=gpu_set.node, phase="Running"))
        return None

    def churn(self, count: int) -> Iterator[int]:
        """Stop and start VMs, one message for each change; yield after each VM."""
        scene = self.scene
        for number in range(count):
            self.stop(self.running[number])
            vmi = self.start()
            self.running.append(vmi.name)
            gpu_set = scene.book.state.sets[vmi.uid]
            claim = ClaimView(gpu_set.claims[0].name, "", "", NAMESPACE, class_name="l40s", template=True)
            scene.show(replace(claim, owner_uid=vmi.uid))
            scene.send(Outcomes((Outcome("set", NAMESPACE, vmi.name, vmi.uid, gpu_set.stamp),)))
            if gpu_set.node:
                bound = self.bind(vmi.name)
                scene.watch("pods", [bound] if bound else [])
            scene.show(replace(vmi, active_pods={f"uid-{vmi.name}-pod": gpu_set.node}, phase="Running"))
            yield number

    def start(self, gpus: str = ANNOTATION, units: int = 1) -> VmiView:
        """Start a VM, one message for each change, up to the listing of its launcher."""
        scene = self.scene
        vmi = scene.newer(replace(self.vmi(), gpus=gpus))
        scene.watch("virtualmachineinstances", [vmi])
        scene.admit(vmi, f"r-{vmi.name}")
        pod = self.pod(vmi)
        scene.show(replace(pod, requests={**pod.requests, RESOURCE: units}))
        scene.show(replace(vmi, active_pods={f"uid-{vmi.name}-pod": ""}, phase="Scheduling"))
        return vmi

    def stop(self, name: str) -> None:
        """Stop a VM, one message for each change."""
        scene = self.scene
        pod, vmi = self._seen("pods", f"{name}-pod"), self._seen("virtualmachineinstances", name)
        if isinstance(pod, PodView) and isinstance(vmi, VmiView):
            scene.show(replace(vmi, deleting=True))
            scene.show(replace(pod, deleting=True))
            scene.show(replace(pod, ended=True, phase="Succeeded", deleting=True))
            scene.remove("pods", pod.key)
            scene.remove("virtualmachineinstances", vmi.key)


class Race:
    """A cluster as it was before its messages: what is timed is `step` over them, and nothing else."""

    def __init__(self, nodes: int, sets: int, *, waiting: int = 0) -> None:
        lived = Cluster(nodes, sets, waiting=waiting)
        before = len(lived.scene.log)
        for _ in lived.churn(VMS):
            pass
        self.inputs = lived.scene.log[before:]
        self.book = Cluster(nodes, sets, waiting=waiting).scene.book
        self.seconds: list[float] = []

    def run(self, stretch: int) -> None:
        """Time one stretch of the messages."""
        length = len(self.inputs) // STRETCHES
        part = self.inputs[stretch * length : (stretch + 1) * length]
        began = time.perf_counter()
        told = [step(self.book, sequence, stamp_ns, body) for sequence, stamp_ns, body, _ in part]
        self.seconds.append((time.perf_counter() - began) / length)
        assert told == [decided for *_, decided in part]

    def rate(self) -> float:
        """Return events a second: the median of the stretches, so that a hiccup counts once."""
        return 1 / statistics.median(self.seconds)

    def megabytes(self) -> float:
        """Return what a process grows by that makes such a book from its snapshot."""
        told = subprocess.run(
            [sys.executable, "-m", "tests.bench.book_size"],
            input=encode_state(self.book.state),
            capture_output=True,
            check=True,
        )
        return float(told.stdout)


async def _read(messages: list[bytes]) -> float:
    """Return messages a second, read from a stream and decoded."""
    with tempfile.TemporaryDirectory() as directory:
        async with LocalNats(Path(directory)) as nats:
            connection = await connect(Access((nats.url,)), print)
            journal = JetStreamJournal(connection)
            await create_streams(journal, replicas=1)
            for start in range(0, len(messages), 200):
                run = enumerate(messages[start : start + 200], start)
                subject = f"{EVENTS_WATCH}.pods"
                await asyncio.gather(*(journal.append(EVENTS, subject, body, message_id=str(at)) for at, body in run))
            seconds, began = [], time.perf_counter()
            async for batch in journal.read(EVENTS, 1, until=len(messages)):
                for message in batch:
                    decode_event(message.body)
                seconds.append((time.perf_counter() - began) / len(batch))
                began = time.perf_counter()
            await connection.close()
            return 1 / statistics.median(seconds)


async def measure(_: object, say: Callable[[str], None]) -> list[Figure]:
    """Measure the heart in both clusters, with and without a queue, and reading the same messages."""
    say("filling clusters")
    small, large, crowded = Race(*SMALL), Race(*LARGE), Race(*LARGE, waiting=LARGE[1] // 10)
    # A process of one cluster would not look through the others' objects.
    gc.collect()
    gc.freeze()
    messages = [body for _, _, body, _ in small.inputs]
    say("reading and deciding in turns, so that a busy moment of the machine counts for all")
    reads = []
    for stretch in range(STRETCHES):
        for race in (small, large, crowded):
            race.run(stretch)
        if stretch % 3 == 0:
            reads.append(await _read(messages))
    read, (nodes, sets) = statistics.median(reads), LARGE
    return [
        Figure("reading and decoding from JetStream", read, "events/s"),
        beside("heart, 50 nodes, 100 sets, of reading", small.rate(), "events/s", read),
        beside("heart, 5,000 nodes, 50,000 sets, of the small", large.rate(), "events/s", small.rate()),
        beside("heart, the same and 5,000 sets waiting, of the small", crowded.rate(), "events/s", small.rate()),
        Figure(f"memory of a book, {nodes:,} nodes, {sets:,} sets", large.megabytes(), "MB"),
    ]


def main() -> int:
    """Print the table."""
    console = Console()
    console.print(table(asyncio.run(measure(None, console.print))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
