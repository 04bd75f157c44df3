"""How VMs, nodes and places of the log are shown: the same words and tables in every command."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from binder.book import Book
from binder.explain import Explanation, NodeVerdict
from binder.placement import NEARNESS
from binder.snapshot import state_digest
from binder.state import GpuSet
from deploy.commands.terminal import WIDE, add_rows, duration, indented, table
from schemas.decisions import TemplateClaim
from schemas.objects import NodeView
from schemas.reasons import Wait

_SECOND_NS = 1_000_000_000


def units(claims: Iterable[TemplateClaim]) -> str:
    """Return what a set asks for as people say it: `2 x l40s-24c, 1 x a16-4q`."""
    return ", ".join(f"{claim.count} x {claim.class_name}" for claim in claims)


def moment(stamp_ns: int) -> str:
    """Return a server stamp as a time of day, UTC."""
    return datetime.fromtimestamp(stamp_ns // _SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if stamp_ns else "-"


def place_line(book: Book, log_id: str, sequence: int) -> Text:
    """Return where in the log a state stands, and its digest."""
    state = book.state
    line = Text.assemble(
        "log ",
        (log_id or "-", "bold"),
        f", generation {state.generation}\nafter DECISIONS ",
        (str(sequence), "bold"),
        ", EVENTS ",
        (str(state.events_seq), "bold"),
        f", {moment(state.stamp_ns)}",
    )
    return Text("\n").join([line, Text(f"state {state_digest(state)}", style="dim")])


def sets_table(book: Book, sets: Sequence[GpuSet], *, wide: bool) -> Table:
    """Return the sets: who, what, where or why not, since when in logical time."""
    columns: list[str | Column] = ["VM", "GPUs", "node", "state", Column("for", justify="right")]
    shown = table(*columns, *(("claims",) if wide else ()))
    for gpu_set in sets:
        row = [f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}", units(gpu_set.claims), gpu_set.node or "-"]
        row += [_state_of(gpu_set), duration(_age_ns(book, gpu_set))]
        shown.add_row(*row, *((", ".join(claim.name for claim in gpu_set.claims),) if wide else ()))
    return shown


def _state_of(gpu_set: GpuSet) -> str:
    if gpu_set.node:
        return "[green]pinned[/]" if gpu_set.pinned else "[cyan]booked[/]"
    if gpu_set.reason:
        return f"[yellow]{gpu_set.reason}[/]"
    return f"released: {gpu_set.released}" if gpu_set.released else "opened"


def _age_ns(book: Book, gpu_set: GpuSet) -> int:
    first = gpu_set.opened_ns
    if not gpu_set.node:
        first = book.state.first_wait.get(f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}", first)
    return book.state.now_ns - first


def nodes_table(book: Book) -> Table:
    """Return the nodes that offer units of a class, and how many of them are free."""
    state = book.state
    classes: dict[str, list[str]] = {}
    for name in sorted(state.objects["gpuclasses"]):
        view = state.gpu_class(name)
        if view is not None:
            classes.setdefault(view.resource, []).append(name)
    shown = table("node", "class", Column("free", justify="right"), Column("offered", justify="right"))
    for name in sorted(state.objects["nodes"]):
        node = state.node(name)
        for resource in sorted(classes):
            offered = node.allocatable.get(resource, 0) if node is not None else 0
            if node is not None and offered:
                shown.add_row(
                    _node_word(node), "/".join(classes[resource]), str(book.free(node, resource)), str(offered)
                )
    return shown


def _node_word(node: NodeView) -> str:
    if node.ready and not node.unschedulable:
        return node.name
    return f"{node.name} [yellow]({'cordoned' if node.unschedulable else 'not ready'})[/]"


def told(found: Explanation, *, width: int) -> RenderableType:
    """Return an explanation: a headline, the reason in words, claims, and each node's answer."""
    parts: list[RenderableType] = [_headline(found)]
    if found.phase != "Placed":
        parts.append(indented(Text(found.summary)))
    if found.claims:
        rows = [(claim.name, f"{claim.count} x {claim.class_name}", claim.resource) for claim in found.claims]
        parts += [Text(), indented(add_rows(table("claim", "units", "counted as"), rows))]
    if found.nodes:
        parts += [Text(), indented(verdicts_table(found.nodes, wide=width >= WIDE))]
        bare = sum(1 for verdict in found.nodes if _is_bare(verdict))
        if bare:
            parts.append(indented(Text(f"{bare} more offer none of these devices", style="dim")))
    return Group(*parts)


def _headline(found: Explanation) -> Text:
    name = (f"{found.namespace}/{found.name}", "bold")
    match found.phase:
        case "Placed":
            told = "pinned there" if found.pinned else "the pin is being written"
            return Text.assemble(name, " has its place on ", (found.node, "bold green"), f": {told}, pod {found.pod}")
        case "Waiting":
            line = Text.assemble(name, " waits: ", (str(found.reason), "bold yellow"))
            return line.append(f", number {found.place} in line, for {duration(found.waits_ns)}")
        case "Refused":
            return Text.assemble(name, " was ", ("refused", "bold red"))
        case _:
            return Text.assemble(name, " is not started")


def verdicts_table(verdicts: Sequence[NodeVerdict], *, wide: bool) -> Table:
    """Return each node's answer, the nearest first; nodes that offer none of the devices are left out."""
    shown = table("node", Column("free", justify="right"), *(("verdict",) if wide else ()), "why not")
    for verdict in sorted(verdicts, key=_nearness):
        if _is_bare(verdict):
            continue
        free = " + ".join(f"{max(verdict.free[name], 0)} of {verdict.offered[name]}" for name in sorted(verdict.free))
        word = (str(verdict.reason) if verdict.reason else "[green]fits[/]",) if wide else ()
        shown.add_row(verdict.node, free, *word, verdict.detail)
    return shown


def _nearness(verdict: NodeVerdict) -> tuple[int, str]:
    return (-NEARNESS[verdict.reason] if verdict.reason else -len(NEARNESS), verdict.node)


def _is_bare(verdict: NodeVerdict) -> bool:
    return verdict.reason is Wait.NO_SUCH_DEVICE and not any(verdict.offered.values())


def machines_table(found: Sequence[Explanation]) -> Table:
    """Return VMs by where they are: node, or the reason and the place in line."""
    shown = table("VM", "GPUs", "node", "state")
    for _, group in groupby(found, key=lambda one: one.namespace):
        for one in group:
            shown.add_row(f"{one.namespace}/{one.name}", units(one.claims) or "-", one.node or "-", _word(one))
    return shown


def _word(found: Explanation) -> str:
    match found.phase:
        case "Placed":
            return "[green]runs[/]" if found.pinned else "[cyan]being pinned[/]"
        case "Waiting":
            return f"[yellow]waits: {found.reason}[/]"
        case "Refused":
            return "[red]refused[/]"
        case _:
            return "[dim]not started[/]"
