"""`gpubinder adopt` and `void`: beginning a log, and an operator's skip of an input that nobody can read."""

import getpass
import socket
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape
from rich.padding import Padding

from binder.voiding import void as skip
from deploy.commands import options as o
from deploy.commands.endings import USAGE, Failed, carry_out
from deploy.commands.terminal import out, print_json, say

if TYPE_CHECKING:
    from binder.stream_journal import JetStreamJournal
    from binder.tip import Tip


def adopt(
    *,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin a new log on a cluster where nothing of ours stands.")
    ] = False,
    unless_begun: Annotated[
        bool,
        typer.Option("--unless-begun", help="With --fresh: where this cluster's log stands, only see to its streams."),
    ] = False,
    replicas: Annotated[
        int, typer.Option("--replicas", min=1, max=5, help="Copies of each stream: 3 on a NATS cluster of three.")
    ] = 1,
    store: o.Store = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and say what would be done.")] = False,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    nats_monitor: o.NatsMonitors = None,
    data: o.Data = o.DEFAULT_DATA,
    kubeconfig: o.Kubeconfig = "",
    context: o.Context = "",
    namespace: o.Namespace = o.DEFAULT_NAMESPACE,
) -> None:
    """Begin a log, or [bold]take over a cluster that already runs[/]: streams, identity, and an anchor in the cluster.

    With --fresh, once per cluster: it refuses wherever something of an earlier log stands: messages in the
    streams, an anchor, claims, launchers, licence copies, records. Without it, where the log is lost or
    shorter than its anchor or an object says, or where two logs served one cluster: a new generation begins,
    and books what launchers, their pins and claims show before it decides anything. Nothing restarts. Look at
    it with --dry-run first; stop every `gpubinder run` before you do it. An empty stream under a mistyped URL
    is never taken for a new beginning; --unless-begun lets an installation that is repeated succeed where the
    log stands as it was anchored. Needs the installer's NATS credentials. A NATS server of yours needs
    JetStream with `sync_interval: always`, and `max_payload: 4MB`.

    [bold]Examples[/]
      gpubinder adopt --fresh       with a nats-server of our own, over --data
      gpubinder adopt --fresh --nats nats://nats:4222 --replicas 3
      gpubinder adopt --nats nats://nats:4222 --dry-run      what it would book
      gpubinder adopt --nats nats://nats:4222 --dry-run --json | jq .notes
    """
    if unless_begun and not fresh:
        raise typer.BadParameter("--unless-begun goes with --fresh: a takeover is never done by itself")
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data, tuple(nats_monitor or ()))
    kube = o.KubeOptions(kubeconfig, context, namespace)
    streams = _Streams(replicas, o.size(store) if store else 0)
    carry_out(_begin(reach, kube, streams, fresh=fresh, unless_begun=unless_begun, dry_run=dry_run, json=json))


class _Streams(msgspec.Struct, frozen=True):
    """How the streams are to be made. `store`: bytes that JetStream may fill on each server, 0 where nobody says."""

    replicas: int
    store: int

    async def make(self, journal: "JetStreamJournal") -> None:
        """Make them, or see to them."""
        from binder.stream_setup import create_streams
        from schemas.streams import shares

        await create_streams(journal, replicas=self.replicas, limits=shares(self.store) if self.store else None)


async def _begin(
    reach: o.NatsOptions,
    kube: o.KubeOptions,
    streams: _Streams,
    *,
    fresh: bool,
    unless_begun: bool,
    dry_run: bool,
    json: bool,
) -> None:
    if fresh:
        await _adopt(reach, kube, streams, unless_begun=unless_begun, dry_run=dry_run, json=json)
    else:
        await _take_over(reach, kube, streams, dry_run=dry_run, json=json)


async def _adopt(
    reach: o.NatsOptions, kube: o.KubeOptions, streams: _Streams, *, unless_begun: bool, dry_run: bool, json: bool
) -> None:
    from deploy.adopt import adopt_fresh, begun_here, check_fresh, ensure_namespace
    from deploy.commands.opening import open_kube, open_nats, program
    from schemas.streams import STREAMS

    async with open_kube(kube) as client, open_nats(reach, make=not dry_run) as opened:
        tip = await begun_here(client, opened.journal, kube.namespace) if unless_begun else None
        if tip is not None:
            if not dry_run:
                await streams.make(opened.journal)
            _tell_begun(tip, kube.namespace, begins=False, json=json)
            return
        await check_fresh(client, opened.journal, kube.namespace)
        if dry_run:
            names = ", ".join(f"{spec.name} ({streams.replicas})" for spec in STREAMS)
            say(out(), f"nothing stands in the way; adopt would make the streams {names}, copies in brackets,")
            say(out(), f"a genesis in DECISIONS, and the anchor in namespace {kube.namespace}")
            return
        await ensure_namespace(client, kube.namespace)
        await streams.make(opened.journal)
        tip = await adopt_fresh(client, opened.journal, kube.namespace, program())
    _tell_begun(tip, kube.namespace, begins=True, json=json)


def _tell_begun(tip: "Tip", namespace: str, *, begins: bool, json: bool) -> None:
    if json:
        print_json({"log": tip.log_id, "generation": tip.generation, "hash": tip.hash.hex()})
        return
    what = "begins" if begins else "stands"
    say(out(), f"log [bold]{tip.log_id}[/] {what}, generation {tip.generation}, anchored in {namespace}")


async def _take_over(
    reach: o.NatsOptions, kube: o.KubeOptions, streams: _Streams, *, dry_run: bool, json: bool
) -> None:
    from binder.stream_setup import check_payload
    from deploy.adopt import ensure_namespace
    from deploy.commands.opening import open_kube, open_nats, program
    from deploy.takeover import Stands, beginning, look, mended, take_over

    async with open_kube(kube) as client, open_nats(reach, make=not dry_run) as opened:
        check_payload(opened.journal)
        try:
            begun = await beginning(client, opened.journal, kube.namespace)
        except Stands as stands:
            if not await mended(opened.journal, streams.make, dry_run=dry_run):
                raise
            _tell_mended(stands.log_id, dry_run=dry_run, json=json)
            return
        found = await look(client, kube.namespace)
        if not dry_run:
            await ensure_namespace(client, kube.namespace)
            await streams.make(opened.journal)
            tip = await take_over(client, opened.journal, kube.namespace, program())
            begun = msgspec.structs.replace(begun, generation=tip.generation)
    if json:
        told = {"booked": found.told(), "notes": found.notes, "counted": found.counted, "dryRun": dry_run}
        print_json({"log": begun.log_id, "generation": begun.generation, **told})
        return
    _tell(("booked as it stands", found.told()), ("to look at", found.notes), ("counted by itself", found.counted))
    what = f"generation {begun.generation} of log [bold]{begun.log_id}[/]"
    if dry_run:
        say(out(), f"adopt would begin {what}; nothing is changed")
    else:
        say(out(), f"{what} begins, anchored in {kube.namespace}: the binder books this as soon as it leads")


def _tell_mended(log_id: str, *, dry_run: bool, json: bool) -> None:
    if json:
        print_json({"log": log_id, "streams": "differ" if dry_run else "mended", "dryRun": dry_run})
        return
    what = "adopt would bring them to what they must be" if dry_run else "they are as they must be again"
    say(out(), f"log [bold]{log_id}[/] stands, its streams did not: {what}; no generation begins, `gpubinder run`")


def _tell(*parts: tuple[str, tuple[str, ...]]) -> None:
    for title, lines in parts:
        say(out(), f"[bold]{title}[/]: {len(lines) or 'nothing'}")
        for line in lines:
            if out().is_terminal:
                # What goes on in a second line stays under its first.
                out().print(Padding(escape(line), (0, 0, 0, 2)))
            else:
                say(out(), f"  {escape(line)}")


def void(
    *,
    sequence: Annotated[int, typer.Argument(metavar="SEQ", min=1, help="The EVENTS sequence to skip.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why: stands in the log for good.")],
    who: Annotated[
        str,
        typer.Option(
            "--who", metavar="NAME", help="Who decides this. Without it: your user and host.", show_default=False
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also skip a message that this program can read: one whose folding fails.")
    ] = False,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Skip [bold]one input that nobody can read[/], for good, so that the log can go on.

    A message of an unknown kind stops the binder: it says so and names its sequence. The first remedy is to
    run the version that wrote it. The skip is a record in the log, honoured by every later fold; an input
    that was decided on already can't be skipped.

    [bold]Example[/]
      gpubinder void 90210 --why "written by 0.9, which was rolled back"
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_void(reach, sequence, why.strip(), who.strip(), force=force, json=json))


async def _void(reach: o.NatsOptions, sequence: int, why: str, who: str, *, force: bool, json: bool) -> None:
    from deploy.commands.opening import open_nats

    if not why:
        raise Failed("--why: say in a few words why this input is skipped", USAGE)
    author = who or f"{getpass.getuser()}@{socket.gethostname()}"
    async with open_nats(reach) as opened:
        at, record = await skip(opened.journal, sequence, who=author, why=why, force=force)
    if json:
        print_json({"decisions": at, "voided": sequence, "who": record.who, "why": record.why})
        return
    say(out(), f"EVENTS {sequence} is skipped from DECISIONS {at} on")
