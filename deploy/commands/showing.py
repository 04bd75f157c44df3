"""How VMs, nodes and places of the log are shown: the same words and tables in every command."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from binder.book import Book
from binder.budgets import is_over
from binder.explain import ClaimStand, Explanation
from binder.judging import NodeVerdict
from binder.placement import NEARNESS
from binder.snapshot import state_digest
from binder.state import GpuSet
from binder.usage import claims_of
from deploy.commands.terminal import WIDE, add_rows, duration, indented, table
from schemas.decisions import HeldClaim, Over, TemplateClaim
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL
from schemas.objects import NodeView
from schemas.reasons import Wait

_SECOND_NS = 1_000_000_000


def units(claims: Iterable[TemplateClaim | HeldClaim | ClaimStand]) -> str:
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
        row = [f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}", units(claims_of(gpu_set)), gpu_set.node or "-"]
        row += [_state_of(gpu_set), duration(_age_ns(book, gpu_set))]
        shown.add_row(*row, *((", ".join(claim.name for claim in claims_of(gpu_set)),) if wide else ()))
    return shown


def claims_table(claims: Sequence[tuple[str, ClaimStand]]) -> Table:
    """Return the held claims: what each is, where, and which VM holds it."""
    shown = table("held claim", "GPUs", "node", "state", "VM")
    for namespace, one in claims:
        shown.add_row(f"{namespace}/{one.name}", units([one]), one.node or "-", _phase(one.phase), one.vm or "-")
    return shown


def _phase(phase: str) -> str:
    style = {"Bound": "green", "Pending": "yellow", "Lost": "red"}.get(phase, "")
    return f"[{style}]{phase}[/]" if style else phase


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


def nodes_table(book: Book, *, most: int | None = None) -> RenderableType:
    """Return the nodes that offer units of a class, and how many of them are free; `most`: so many rows."""
    state = book.state
    classes: dict[str, list[str]] = {}
    for name in sorted(state.objects["gpuclasses"]):
        view = state.gpu_class(name)
        if view is not None:
            classes.setdefault(view.resource, []).append(name)
    rows = [
        (_node_word(node), "/".join(classes[resource]), str(book.free(node, resource)), str(node.allocatable[resource]))
        for name in sorted(state.objects["nodes"])
        for resource in sorted(classes)
        if (node := state.node(name)) is not None and node.allocatable.get(resource, 0)
    ]
    shown = table("node", "class", Column("free", justify="right"), Column("offered", justify="right"))
    return _cut(shown, rows, most, f"{len(rows) - (most or 0)} more like these")


def _cut(shown: Table, rows: Sequence[Sequence[str]], most: int | None, rest: str) -> RenderableType:
    """Return the table with its first rows, and a line for the rest."""
    add_rows(shown, rows[:most])
    return shown if most is None or len(rows) <= most else Group(shown, Text(rest, style="dim"))


def _node_word(node: NodeView) -> str:
    if node.ready and not node.unschedulable:
        return node.name
    return f"{node.name} [yellow]({'cordoned' if node.unschedulable else 'not ready'})[/]"


def told(found: Explanation, *, width: int, most: int | None = None) -> RenderableType:
    """Return an explanation: a headline, the reason in words, claims, and each node's answer (`most`: so many)."""
    parts: list[RenderableType] = [_headline(found)]
    if found.phase not in {"Placed", "Bound"}:
        parts.append(indented(Text(found.summary)))
    if found.kept:
        parts.append(indented(Text(f"node {found.kept} is kept for it: those behind it in line take nothing there")))
    if found.claims:
        rows = [(claim.name, f"{claim.count} x {claim.class_name}", claim.resource) for claim in found.claims]
        parts += [Text(), indented(add_rows(table("claim", "units", "counted as"), rows))]
    if found.held:
        held = [(found.namespace, one) for one in found.held]
        parts += [Text(), indented(claims_table(held))]
    if found.budgets:
        parts += [Text(), indented(budgets_table(found.budgets))]
    if found.nodes:
        if found.reason is Wait.CLAIM_IN_USE:
            parts += [Text(), indented(Text("each node, if it had the claims that it names:"))]
        parts += [Text(), indented(verdicts_table(found.nodes, wide=width >= WIDE, most=most))]
        bare = sum(1 for verdict in found.nodes if _is_bare(verdict))
        if bare:
            parts.append(indented(Text(f"{bare} more offer none of these devices", style="dim")))
    return Group(*parts)


def _headline(found: Explanation) -> Text:
    name = (f"{found.namespace}/{found.name}", "bold")
    match found.phase:
        case "Placed":
            told = f"pinned there, pod {found.pod}" if found.pinned else f"the pin is being written, pod {found.pod}"
            told = told if found.pod else "booked at admission, its launcher is still to come"
            return Text.assemble(name, " has its place on ", (found.node, "bold green"), f": {told}")
        case "Bound":
            return Text.assemble(name, " has its units on ", (found.node, "bold green"), _holder(found))
        case "Pending" | "Lost":
            line = Text.assemble(
                name, " is ", (found.phase, "bold yellow"), f": {found.reason}" if found.reason else ""
            )
            return line.append(f", number {found.place} in line" if found.place else "").append(_holder(found))
        case "Waiting":
            line = Text.assemble(name, " waits: ", (str(found.reason), "bold yellow"))
            return line.append(f", number {found.place} in line, for {duration(found.waits_ns)}")
        case "Refused":
            return Text.assemble(name, " was ", ("refused", "bold red"))
        case _:
            return Text.assemble(name, " is not started")


def _holder(found: Explanation) -> str:
    vms = [one.vm for one in found.held if one.name == found.name and one.vm]
    return f", held by {vms[0]}" if vms else ""


def budgets_table(budgets: Sequence[Over]) -> Table:
    """Return the budgets that limit what is asked: whose each is, of what, and what it leaves."""
    numbers = [Column(word, justify="right") for word in ("limit", "held", "asked")]
    shown = table("budget", "of", *numbers, "verdict")
    for one in budgets:
        of = "all classes" if one.key == BUDGET_TOTAL else one.key.removeprefix(BUDGET_CLASS_PREFIX)
        verdict = f"[yellow]{Wait.OVER_BUDGET}[/]" if is_over(one) else "[green]enough[/]"
        shown.add_row(f"{one.namespace}/{one.budget}", of, str(one.hard), str(one.used), str(one.asked), verdict)
    return shown


def verdicts_table(verdicts: Sequence[NodeVerdict], *, wide: bool, most: int | None = None) -> RenderableType:
    """Return each node's answer, the nearest first; nodes that offer none of the devices are left out."""
    chosen = sorted((verdict for verdict in verdicts if not _is_bare(verdict)), key=_nearness)
    rows = [
        (
            verdict.node,
            " + ".join(f"{max(verdict.free[name], 0)} of {verdict.offered[name]}" for name in sorted(verdict.free)),
            *((str(verdict.reason) if verdict.reason else "[green]fits[/]",) if wide else ()),
            escape(verdict.detail),
        )
        for verdict in chosen
    ]
    shown = table("node", Column("free", justify="right"), *(("verdict",) if wide else ()), "why not")
    rest = Counter(str(verdict.reason) for verdict in chosen[most:]) if most is not None else Counter[str]()
    return _cut(shown, rows, most, ", ".join(f"{number} more: {reason}" for reason, number in sorted(rest.items())))


def _nearness(verdict: NodeVerdict) -> tuple[int, str]:
    return (-NEARNESS[verdict.reason] if verdict.reason else -len(NEARNESS), verdict.node)


def _is_bare(verdict: NodeVerdict) -> bool:
    return verdict.reason is Wait.NO_SUCH_DEVICE and not any(verdict.offered.values())


def machines_table(found: Sequence[Explanation], *, most: int) -> RenderableType:
    """Return VMs by where they are: node, or the reason why not; `most` of each standing, the rest counted."""
    shown, seen = table("VM", "GPUs", "node", "state"), Counter[str]()
    for one in found:
        word = _word(one)
        seen[word] += 1
        if seen[word] <= most:
            shown.add_row(f"{one.namespace}/{one.name}", units((*one.claims, *one.held)) or "-", one.node or "-", word)
    rest = [f"{number - most:,} more: {word}" for word, number in seen.items() if number > most]
    return Group(shown, Text.from_markup(", ".join(rest), style="dim")) if rest else shown


def _word(found: Explanation) -> str:
    match found.phase:
        case "Placed":
            return "[green]runs[/]" if found.pinned else "[cyan]being pinned[/]"
        case "Waiting":
            return f"[yellow]waits: {found.reason}[/]"
        case "Refused":
            return f"[red]refused: {escape(found.summary)}[/]"
        case _:
            return "[dim]not started[/]"
