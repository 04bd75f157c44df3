"""`gpubinder slice` and `rerun`: a stretch of the log as a file, and its decisions made again on a laptop."""

import sys
from collections import deque
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from binder.audit import Auditor, Difference, Report, Turn
from binder.journal import Journal
from binder.slices import Slice, cut, load
from binder.snapshot import state_digest
from binder.subjects import about_decision, about_event
from binder.telling import told_decision, told_event
from deploy.commands import options as o
from deploy.commands.endings import Failed, carry_out
from deploy.commands.proof import code_of, print_report, report_as_json
from deploy.commands.terminal import out, print_json, say
from schemas.streams import DECISIONS, EVENTS

AROUND = 50
"""So many inputs on either side are taken by --around."""
BEHIND_MAX = 6
"""So many inputs that touched the same VMs and nodes are shown behind a difference."""
_REMEMBERED = 20_000


def slice_(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the slice.")],
    since: Annotated[int | None, typer.Option("--from", metavar="SEQ", help="First EVENTS sequence.")] = None,
    until: Annotated[int | None, typer.Option("--to", metavar="SEQ", help="Last EVENTS sequence.")] = None,
    around: Annotated[
        int | None,
        typer.Option("--around", metavar="SEQ", help=f"{AROUND} inputs before and after this EVENTS sequence."),
    ] = None,
    vm: Annotated[
        str,
        typer.Option(
            "--vm", metavar="NAMESPACE/NAME", help="From the first to the last input about this VM.", show_default=False
        ),
    ] = "",
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Cut a stretch of the log into [bold]one file[/], with the state before it, to run it again elsewhere.

    The file holds whole frames with the inputs under them, as they were stored: gzipped JSON lines, readable
    with zcat. Names of tenants' objects are in it; secrets are not, as they never reach the log.

    [bold]Examples[/]
      gpubinder slice --vm tenant-a/train-1 -o train-1.slice
      gpubinder slice --around 90210 -o incident.slice
      gpubinder slice --from 90000 --to 91000 -o stretch.slice
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_slice(reach, output, _bounds(since, until, around, vm), vm, json=json))


def _bounds(since: int | None, until: int | None, around: int | None, vm: str) -> tuple[int, int] | None:
    ways = [since is not None or until is not None, around is not None, bool(vm)]
    if sum(ways) != 1:
        raise typer.BadParameter("choose one of --from with --to, --around, and --vm")
    if around is not None:
        return max(around - AROUND, 1), around + AROUND
    if vm:
        return None
    if since is None or until is None or not 1 <= since <= until:
        raise typer.BadParameter("--from and --to name the first and the last EVENTS sequence, the first from 1")
    return since, until


async def _slice(reach: o.NatsOptions, output: Path, bounds: tuple[int, int] | None, vm: str, *, json: bool) -> None:
    from deploy.commands.opening import open_nats

    async with open_nats(reach) as opened:
        first, last = bounds if bounds is not None else await mentions(opened.journal, vm)
        await cut(opened.journal, first, last, output)
    about = _about_slice(output, load(output))
    if json:
        print_json(about)
        return
    console = out()
    stretch = "EVENTS {events_from} to {events_to}, DECISIONS {decisions_from} to {decisions_to}, {bytes:,} bytes"
    say(console, f"[bold]{output}[/]: {stretch.format(**about)}")
    say(console, f"run it again with: gpubinder rerun {output}", style="dim")


def _about_slice(file: Path, found: Slice) -> dict[str, object]:
    head = found.head
    return {
        "file": str(file),
        "bytes": file.stat().st_size,
        "events_from": head.events_from,
        "events_to": head.events_to,
        "decisions_from": head.tip.sequence + 1,
        "decisions_to": found.journal.last(DECISIONS),
        "state": state_digest(found.state),
    }


async def mentions(journal: Journal, vm: str) -> tuple[int, int]:
    """Return the first and the last EVENTS sequence about a VM. Raises `Failed`."""
    subject, last = f"vm {vm}", (await journal.info(EVENTS)).last
    found: list[int] = []
    if last:
        async for run in journal.read(EVENTS, 1, until=last):
            found += [message.sequence for message in run if subject in about_event(message.body)]
    if not found:
        raise Failed(f"{vm}: no input of the log is about a VM of this name")
    return found[0], found[-1]


def rerun(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A slice.", exists=True, dir_okay=False)],
    step: Annotated[bool, typer.Option("--step", help="Go input by input: Enter for the next, q to stop.")] = False,
    json: o.Json = False,
) -> None:
    """Fold a slice again [bold]without cluster or NATS[/] and decide each input anew, by the rules of this program.

    What differs from the log is shown side by side, with the inputs behind it. Chain and inputs are proven
    as `verify` proves them; only the state before the stretch is taken from the file: its digest is printed,
    compare it with that of `gpubinder replay --to`.

    [bold]Examples[/]
      gpubinder rerun incident.slice
      gpubinder rerun incident.slice --step    watch it decide
    """
    carry_out(_rerun(file, step=step, json=json))


async def _rerun(file: Path, *, step: bool, json: bool) -> int:
    found = load(file)
    before = state_digest(found.state)
    heard = Heard(out() if step else None)
    auditor = Auditor(found.journal, found.state, found.head.tip, heard=heard, confirm_seconds=0.05)
    report = await auditor.verify()
    if not report.finding and auditor.follower.book.state.events_seq != found.head.events_to:
        report.finding = (
            f"the slice ends at EVENTS {auditor.follower.book.state.events_seq}, not at {found.head.events_to}"
        )
    behind = heard.behind(report.difference) if report.difference is not None else []
    if json:
        told = [{"sequence": turn.message.sequence, "input": told_event(turn.message.body)} for turn in behind]
        about = {"state_before": before, "decisions_from": found.head.tip.sequence + 1, "behind": told}
        print_json(report_as_json(report) | about)
    else:
        _print(out(), found, before, report, behind)
    return code_of(report)


def _print(console: Console, found: Slice, before: str, report: Report, behind: list[Turn]) -> None:
    head = found.head
    console.print(f"EVENTS {head.events_from} to {head.events_to}, from the state after DECISIONS {head.tip.sequence}")
    say(console, f"state {before}", style="dim")
    console.print()
    print_report(console, report, asked=True)
    if behind:
        console.print()
        console.print("[bold]behind it[/]")
        for turn in behind:
            line = f"  EVENTS {turn.message.sequence:<7} {told_event(turn.message.body)}"
            console.print(line, markup=False, no_wrap=True, overflow="ellipsis")


def _turn_about(turn: Turn) -> frozenset[str]:
    return about_event(turn.message.body).union(*(about_decision(decision) for decision in turn.logged))


class Heard:
    """Hears each input of a re-run: remembers it, and tells it where somebody watches step by step."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._turns: deque[Turn] = deque(maxlen=_REMEMBERED)

    def __call__(self, turn: Turn) -> None:
        """Hear one input."""
        self._turns.append(turn)
        if self._console is not None:
            self._tell(self._console, turn)

    def _tell(self, console: Console, turn: Turn) -> None:
        same = turn.derived is None or turn.derived == turn.logged
        head = f"[bold]{turn.message.sequence:>7}[/]  "
        console.print(head, end="")
        console.print(told_event(turn.message.body), markup=False, no_wrap=True, overflow="ellipsis")
        shown = Table.grid(padding=(0, 1, 0, 0))
        mark = Text("=", style="green") if same else Text("logged", style="red")
        for decision in turn.logged:
            shown.add_row(mark, Text(told_decision(decision)))
        for decision in () if same else turn.derived or ():
            shown.add_row(Text("decided", style="yellow"), Text(told_decision(decision)))
        if shown.rows:
            console.print(Padding(shown, (0, 0, 0, 9), expand=False))
        if not _goes_on():
            self._console = None

    def behind(self, difference: Difference) -> list[Turn]:
        """Return the differing input and the last ones before it about the same VMs, nodes and classes."""
        about: set[str] = set()
        for decision in (*difference.logged, *difference.derived):
            about |= about_decision(decision)
        found: list[Turn] = []
        for turn in reversed(self._turns):
            sequence = turn.message.sequence
            if sequence > difference.sequence:
                continue
            if sequence == difference.sequence or about & _turn_about(turn):
                found.append(turn)
            if len(found) > BEHIND_MAX:
                break
        return found[::-1]


def _goes_on() -> bool:
    """Wait for Enter; False where the watcher has seen enough. Without a keyboard nothing is waited for."""
    if not sys.stdin.isatty():
        return True
    return input().strip().lower() != "q"
