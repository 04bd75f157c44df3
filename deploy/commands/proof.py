"""`gpubinder verify`: the log proven from its stored bytes, without trust in whoever runs it."""

import asyncio
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from binder.audit import Auditor, Difference, Part, Report
from binder.tip import Tip
from deploy.commands import options as o
from deploy.commands.endings import BROKEN, DIFFERENT, OK, Failed, carry_out
from deploy.commands.terminal import count, duration, err, indented, out, print_json, progress, say

_REFRESH_S = 0.1
_SECOND_NS = 1_000_000_000


def verify(
    *,
    anchor: Annotated[
        bool,
        typer.Option(
            "--anchor/--no-anchor",
            help="Hold the log against the anchor in the cluster. Without it a log that was cut short goes unnoticed.",
        ),
    ] = True,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
    kubeconfig: o.Kubeconfig = "",
    context: o.Context = "",
    namespace: o.Namespace = o.DEFAULT_NAMESPACE,
) -> None:
    """[bold]Prove the log[/]: its chain, its order, its inputs, and every decision derived anew.

    Each message is covered by the hash of the next, each input by the digest of the frame that decided on
    it: a byte flipped, a message dropped, swapped or inserted is found, in either stream. Decisions made
    under the rules of this program are made again and compared; others are held by the chain alone.

    [bold]Examples[/]
      gpubinder verify                     with the anchor of the cluster in your kubeconfig
      gpubinder verify --no-anchor         on a laptop, over a copy of the store: --data DIR
      gpubinder verify --json | jq .whole
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    kube = o.KubeOptions(kubeconfig, context, namespace) if anchor else None
    carry_out(_verify(reach, kube, json=json))


async def _verify(reach: o.NatsOptions, kube: o.KubeOptions | None, *, json: bool) -> int:
    from deploy.commands.opening import open_nats

    anchored = await _anchor(kube) if kube is not None else None
    async with open_nats(reach) as opened:
        auditor = Auditor(opened.journal)
        report = await watched(auditor, anchored, err())
    if json:
        print_json(report_as_json(report))
    else:
        print_report(out(), report, asked=kube is not None)
    return code_of(report)


async def _anchor(options: o.KubeOptions) -> Tip:
    """Return the cluster's anchor. Raises `NotOurs` where there is none."""
    from binder.anchor import Anchor, NotOurs
    from binder.kube_login import LoginError
    from deploy.commands.opening import open_kube

    try:
        async with open_kube(options) as kube:
            found = await Anchor(kube, options.namespace).read()
    except LoginError as error:
        raise Failed(f"{error}; or verify without the anchor: --no-anchor") from None
    if found is None:
        raise NotOurs(
            f"no anchor stands in namespace {options.namespace}: name the log's cluster and namespace, "
            f"or verify without it (--no-anchor)"
        )
    return found


async def watched(auditor: Auditor, anchor: Tip | None, console: Console) -> Report:
    """Run an audit under a bar."""
    work = asyncio.ensure_future(auditor.verify(anchor))
    with progress(console) as bar:
        task = bar.add_task("verifying", total=None)
        while not work.done():
            await asyncio.wait({work}, timeout=_REFRESH_S)
            bar.update(task, completed=auditor.follower.tip.sequence, total=auditor.last or None)
    return await work


def code_of(report: Report) -> int:
    """Return the exit code of an audit."""
    if report.finding:
        return BROKEN
    return DIFFERENT if report.difference is not None else OK


def report_as_json(report: Report) -> dict[str, object]:
    """Return a report for machines: its fields, and `whole`."""
    fields: dict[str, object] = msgspec.to_builtins(report)
    return fields | {"whole": report.whole}


def print_report(console: Console, report: Report, *, asked: bool, indent: int = 0) -> None:
    """Print what was proven, a line each, and the finding last, where the eye rests."""
    log = f"log {report.log_id or '-'}, generation {report.generation}, up to DECISIONS {report.log_through}"
    console.print(f"{' ' * indent}[dim]{log}[/]")
    for mark, subject, words in _lines(report, asked=asked):
        console.print(f"{' ' * indent}{mark} [bold]{subject:<10}[/]{words}")
    if report.difference is not None:
        console.print()
        print_difference(console, report.difference)
    if report.finding:
        console.print()
        say(console, f"[bold red]{escape(report.finding)}[/]")


_GOOD, _BAD, _NONE = "[green]✓[/]", "[red]✗[/]", "[yellow]-[/]"


def _lines(report: Report, *, asked: bool) -> list[tuple[str, str, str]]:
    chain = f"{count(report.messages, 'message')}, each over the one before"
    inputs = f"{count(report.inputs, 'input')}, all there, in order, as they were decided on"
    found = [(_GOOD, "chain", chain), (_GOOD, "inputs", inputs)]
    if report.broken is Part.CHAIN:
        found[0] = (_BAD, "chain", f"holds for {count(report.messages, 'message')}, and no further")
    elif report.broken is Part.INPUTS:
        found[1] = (_BAD, "inputs", f"{count(report.inputs, 'input')} are as they were decided on, and no more")
    derived = f"{count(report.rederived, 'deciding input')} decided anew, all as logged"
    if report.difference is not None:
        derived = f"EVENTS {report.difference.sequence} is decided otherwise by these rules"
    found.append((_BAD if report.difference else _GOOD, "decisions", derived))
    if report.chain_only:
        other = (
            f"{count(report.chain_only, 'deciding input')} held by the chain alone (other rules, or after a difference)"
        )
        found.append((_NONE, "", other))
    if report.broken is Part.ANCHOR:
        found.append((_BAD, "anchor", "the log is not the one that was anchored in the cluster"))
    elif report.anchored:
        found.append((_GOOD, "anchor", "the log holds what was anchored in the cluster"))
    elif not asked:
        found.append((_NONE, "anchor", "not asked for: a log that was cut short would look the same"))
    if report.uncovered > 0:
        found.append(
            (_NONE, "open", f"{count(report.uncovered, 'input')} after the last frame: nothing vouches for them yet")
        )
    if report.voided:
        found.append((_NONE, "voided", f"{count(report.voided, 'input')} skipped by hand"))
    if report.lost:
        told = f"{count(report.lost, 'frame')} of a log that was taken over: their inputs are gone, the chain is whole"
        found.append((_NONE, "lost", told))
    if report.gap_seconds:
        found.append((_NONE, "silence", f"{duration(report.gap_seconds * _SECOND_NS)} without a leader"))
    return found


def print_difference(console: Console, difference: Difference) -> None:
    """Print what was logged and what these rules decide, side by side or one above the other."""
    from binder.telling import told_decision

    console.print(f"[bold]EVENTS {difference.sequence}[/] is the first input that is decided otherwise:")
    shown = Table.grid(padding=(0, 2, 0, 0))
    for title, style, decisions in (
        ("logged", "red", difference.logged),
        ("these rules", "green", difference.derived),
    ):
        told = [told_decision(decision) for decision in decisions] or ["nothing"]
        for place, line in enumerate(told):
            shown.add_row(Text(title if place == 0 else "", style=style), Text(line))
    console.print(indented(shown))
