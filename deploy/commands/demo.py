"""`gpubinder demo`: the whole pipeline in seconds on a cluster in memory, and the log that proves what it did."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.status import Status
from typing_extensions import override

from binder.explain import Explanation
from binder.kube import Kube
from deploy.commands import options as o
from deploy.commands import showing
from deploy.commands.endings import BROKEN, DIFFERENT, OK, carry_out
from deploy.commands.proof import print_report, report_as_json
from deploy.commands.terminal import count, duration, err, indented, out, print_json, say

if TYPE_CHECKING:
    from deploy.demo import Change, Demo, Proof


def demo(
    *,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster",
            metavar="FILE|DIR",
            exists=True,
            help="Your own cluster: manifests as `kubectl get -o yaml` prints them. Without it: the example.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", file_okay=False, help="Keep the log there, for the other commands."),
    ] = None,
    json: o.Json = False,
) -> None:
    """Place the VMs of a cluster in memory, show who waits and why, [bold]replay the log and see that it agrees[/].

    Starts a nats-server of its own and runs the real pipeline: ingest, webhooks, binder, projector. API server
    and KubeVirt are models; no cluster and no container engine are needed. Nothing outside is touched.

    [bold]Examples[/]
      gpubinder demo
      gpubinder demo --keep /tmp/log && gpubinder replay --data /tmp/log

    [bold]Example: your own cluster[/], its VMs placed anew beside the pods that are no VM's
      mkdir dump
      kubectl get nodes,pv,ns,gpuclasses -o yaml > dump/cluster.yaml
      kubectl get pvc,vms,kubevirt -A -o yaml > dump/tenants.yaml
      kubectl get pods -A -l '!kubevirt.io' -o yaml > dump/pods.yaml
      gpubinder demo --cluster dump
    """
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise typer.BadParameter(f"--keep {keep}: the directory is not empty; a demo begins a log of its own")
    carry_out(_demo(cluster, keep, json=json))


async def _demo(cluster: Path | None, keep: Path | None, *, json: bool) -> int:
    from binder.stream_setup import create_streams
    from deploy.commands.opening import identity, open_nats, program
    from deploy.demo import NAMESPACE, staged
    from deploy.roles import Place
    from deploy.world.dump import read_manifests

    objects = read_manifests(cluster if cluster is not None else resources.files("deploy") / "examples")
    tell = Silent() if json else Teller(keep)
    with _directory(keep) as data, tell:
        async with open_nats(o.NatsOptions(data=data), make=True) as opened:
            await create_streams(opened.journal, replicas=1)

            def place(kube: Kube) -> Place:
                return Place(kube, opened.journal, opened.connection, NAMESPACE, identity(), program())

            async with staged(objects, place) as play:
                tell.cluster(play)
                found = await play.settle()
                tell.placed(found)
                change = await play.make_room()
                tell.changed(change)
                await play.rest()
            proof = await play.prove()
        tell.proven(proof)
    if json:
        print_json(_as_json(found, change, proof))
    if proof.agrees:
        return OK
    return BROKEN if proof.report.finding else DIFFERENT


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="gpubinder-demo-") as made:
        yield Path(made)


def _as_json(found: Sequence[Explanation], change: "Change | None", proof: "Proof") -> dict[str, object]:
    return {
        "vms": found,
        "change": change,
        "log": report_as_json(proof.report),
        "state": {"live": proof.live, "replayed": proof.replayed},
        "agrees": proof.agrees,
    }


ROWS = 12
"""So many rows of a table are shown; a demo is read at one go."""


class Silent:
    """Tells nothing: machines read the end alone."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def cluster(self, play: "Demo") -> None:
        """Tell what there is."""

    def placed(self, found: Sequence[Explanation]) -> None:
        """Tell who got what."""

    def changed(self, change: "Change | None") -> None:
        """Tell who made room for whom."""

    def proven(self, proof: "Proof") -> None:
        """Tell what the log proves."""


class Teller(Silent):
    """Tells the play to the person at the terminal, scene by scene; between scenes it says what goes on."""

    def __init__(self, keep: Path | None) -> None:
        self._keep = keep
        self._began = time.monotonic()
        self._out = out()
        self._busy: Status = err().status("starting nats-server")

    @override
    def __enter__(self) -> Self:
        """Begin."""
        self._busy.start()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        """End."""
        self._busy.stop()

    def _scene(self, title: str) -> None:
        self._busy.stop()
        self._out.print(f"[bold cyan]{title}[/]")

    def _then(self, doing: str) -> None:
        self._out.print()
        self._busy.update(doing)
        self._busy.start()

    @override
    def cluster(self, play: "Demo") -> None:
        """Tell what there is, and what of the dump was left out."""
        self._scene("The cluster")
        held = play.count()
        words = (count(held["nodes"], "node"), count(held["classes"], "GPU class"), count(held["vms"], "VM"))
        self._out.print(f"  {', '.join(words)}, {held['asking']} of them ask for GPUs")
        for what, number in sorted(play.loaded.left_out.items()):
            self._out.print(f"  [dim]left out: {number} {what}[/]")
        self._out.print(indented(showing.nodes_table(play.book, most=ROWS), above=1))
        self._then("starting the VMs")

    @override
    def placed(self, found: Sequence[Explanation]) -> None:
        """Tell who got what, and why the nearest of those that wait does."""
        self._scene("Who got what")
        self._out.print(indented(showing.machines_table(found, most=ROWS)))
        waiting = [one for one in found if one.phase == "Waiting"]
        if waiting:
            self._out.print()
            chosen = min(waiting, key=lambda one: one.place)
            self._scene(f"Why {chosen.namespace}/{chosen.name} waits")
            self._out.print(indented(showing.told(chosen, width=self._out.width, most=ROWS)))
        self._then("stopping one VM")

    @override
    def changed(self, change: "Change | None") -> None:
        """Tell who made room for whom."""
        self._scene("One VM stops")
        if change is None:
            self._out.print("  no VM waits for room that another one's end would make")
        else:
            stopped, started = "/".join(change.stopped), "/".join(change.started)
            say(self._out, f"  {stopped} is stopped; {duration(change.took_ns)} later")
            say(self._out, f"  [bold green]{started}[/] has its place on {change.node}, its launcher pinned there")
        self._then("replaying the log")

    @override
    def proven(self, proof: "Proof") -> None:
        """Tell what the log proves."""
        self._scene("The log, replayed from its first message")
        print_report(self._out, proof.report, asked=True, indent=2)
        if proof.live == proof.replayed:
            self._out.print("  [green]✓[/] [bold]state     [/]the same as it was lived, digest for digest")
        else:
            self._out.print("  [red]✗[/] [bold]state     [/]another one than was lived")
        took = duration(round((time.monotonic() - self._began) * 1_000_000_000))
        self._out.print(f"\n[dim]all of it in {took}[/]")
        if self._keep is not None:
            self._out.print("[dim]look further:[/]")
            for words in ("replay", "verify --no-anchor"):
                say(self._out, f"  gpubinder {words} --data {self._keep}")
