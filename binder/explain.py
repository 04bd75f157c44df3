"""Why a VM runs where it runs, or why it waits, and the same of held claims: told from the state alone.

A place in the queue is no decision, as everyone's changes with each that is placed: it is told here, on asking.
"""

import msgspec

from binder.book import Book
from binder.budgets import answers, is_over, sentence, total_of
from binder.decide_holdings import need_of as held_need
from binder.decide_set import need_if_had, need_of
from binder.holdings import key_of
from binder.judging import Asked, NodeVerdict, verdicts, volumes_of
from binder.launchers import claim_names, class_entries
from binder.placement import Need
from binder.state import GpuSet, Holding, awaits_launcher
from binder.usage import Amounts, claims_of, units
from schemas.decisions import Over, TemplateClaim
from schemas.objects import VmiView, VmView
from schemas.reasons import Wait

NOT_STARTED = "it has no VMI: it is stopped, or its start was refused, which its events tell"
UNKNOWN = "no VM or VMI with a GPU reference, and no held claim, has this name"


class ClaimStand(msgspec.Struct, frozen=True):
    """How one held claim stands. `phase`: Bound, Pending or Lost; `vm`: who holds it, namespace/name."""

    name: str
    class_name: str
    count: int
    resource: str
    phase: str
    node: str
    vm: str
    summary: str


class Explanation(msgspec.Struct, frozen=True):
    """What is known of one VM's set, or of one held claim (`kind`: vm or claim).

    `phase` of a VM: Placed, Waiting, NotStarted or Unknown; of a claim: Bound, Pending or Lost. `place`: position in
    the queue from 1, 0 where it does not wait. `waits_ns`: logical time a VM waits. `held`: the held claims of the VM,
    or those that go together with the claim, itself among them. `kept`: the node that is kept for the VM. `budgets`:
    where a budget stands in the way, all that limit what is asked, its own namespace's first.
    """

    namespace: str
    name: str
    phase: str
    summary: str
    node: str = ""
    pod: str = ""
    pinned: bool = False
    reason: Wait | None = None
    claims: tuple[TemplateClaim, ...] = ()
    place: int = 0
    waits_ns: int = 0
    nodes: tuple[NodeVerdict, ...] = ()
    budgets: tuple[Over, ...] = ()
    kind: str = "vm"
    held: tuple[ClaimStand, ...] = ()
    kept: str = ""


def explain(book: Book, namespace: str, name: str, *, claim: bool = False) -> Explanation:
    """Return why the VM (or bare VMI) `namespace/name` stands where it stands, else the held claim of that name.

    `claim`: the held claim, also where a VM has its name.
    """
    state, key = book.state, f"{namespace}/{name}"
    holding, vmi, vm = state.holdings.get(key), state.vmi(key), state.vm(key)
    if holding is not None and (claim or (vmi is None and vm is None)):
        return _of_claim(book, holding)
    if claim or (vmi is None and vm is None):
        return Explanation(namespace, name, "Unknown", UNKNOWN)
    gpu_set = state.sets.get(vmi.uid) if vmi is not None else None
    if vmi is None:
        return _not_started(book, namespace, name, vm)
    if gpu_set is None:
        return Explanation(namespace, name, "NotStarted", "no admitted launcher stands behind our gate yet")
    return _placed(book, gpu_set) if gpu_set.node else _waiting(book, vmi, gpu_set)


def _not_started(book: Book, namespace: str, name: str, vm: VmView | None) -> Explanation:
    """Explain a VM without a VMI: whether a budget would be in its way now, by what it declares."""
    asked = total_of((one.class_name, one.count) for one in class_entries(vm)) if vm is not None else {}
    over, told = _over(book, namespace, asked), ""
    if over:
        told = f"; now a start would be beyond a budget: {sentence(next(filter(is_over, over)))}"
    return Explanation(namespace, name, "NotStarted", NOT_STARTED + told, budgets=over)


def _over(book: Book, namespace: str, asked: Amounts) -> tuple[Over, ...]:
    """Return the budgets that limit what is asked, if one of them has too few units left; else nothing."""
    found = tuple(answers(book.budgets, namespace, asked))
    return found if any(map(is_over, found)) else ()


def _placed(book: Book, gpu_set: GpuSet) -> Explanation:
    told = "pinned, our gate removed" if gpu_set.pinned else "booked, the pin is being written"
    told = "booked at admission, its launcher is still to come" if awaits_launcher(gpu_set) else told
    told = gpu_set.leaving.message if gpu_set.leaving is not None else told
    return Explanation(
        gpu_set.vmi.namespace,
        gpu_set.vmi.name,
        "Placed",
        f"on {gpu_set.node}: {told}",
        gpu_set.node,
        gpu_set.pod,
        gpu_set.pinned,
        claims=gpu_set.claims,
        held=_stands(book, gpu_set.vmi.uid),
    )


def _waiting(book: Book, vmi: VmiView, gpu_set: GpuSet) -> Explanation:
    state, pod = book.state, book.launcher_of(vmi)
    need = _need(book, vmi, gpu_set)
    volumes = volumes_of(book, vmi, pod) if pod is not None else {}
    first = state.first_wait.get(vmi.key, gpu_set.opened_ns)
    over = _over(book, vmi.namespace, book.charging.asked(gpu_set)) if gpu_set.reason is Wait.OVER_BUDGET else ()
    kept = state.kept.node if state.kept is not None and state.kept.vmi == gpu_set.vmi else ""
    return Explanation(
        vmi.namespace,
        vmi.name,
        "Waiting" if gpu_set.reason else "NotStarted",
        sentence(next(filter(is_over, over))) if over else _told(gpu_set),
        reason=gpu_set.reason,
        claims=gpu_set.claims,
        place=book.line.place(vmi.uid),
        waits_ns=state.now_ns - first if gpu_set.reason else 0,
        nodes=verdicts(Asked(book, vmi.key, need, volumes)) if need is not None else (),
        budgets=over,
        held=_stands(book, vmi.uid) or _named(book, vmi),
        kept=kept,
    )


def _told(gpu_set: GpuSet) -> str:
    ended = f"its booking ended: {gpu_set.released}" if gpu_set.released else "being looked at"
    return gpu_set.message or ended


def _named(book: Book, vmi: VmiView) -> tuple[ClaimStand, ...]:
    """Return the held claims that a VMI names, whoever has them."""
    found = [book.state.holding(vmi.namespace, name) for name in claim_names(vmi.gpus)]
    return tuple(_stand(holding) for holding in found if holding is not None and not holding.freed)


def _need(book: Book, vmi: VmiView, gpu_set: GpuSet) -> Need | None:
    """Return what a set asks of a node, None where that can't be told: of claims in use, as if it had them."""
    pod = book.launcher_of(vmi)
    if pod is None:
        return None
    if gpu_set.reason is Wait.CLAIM_IN_USE:
        need = need_if_had(book, vmi, pod)
    else:
        need = need_of(book, vmi, gpu_set, pod) if claims_of(gpu_set) else Wait.CLAIM_NOT_FOUND
    return need if isinstance(need, Need) else None


def _of_claim(book: Book, holding: Holding) -> Explanation:
    """Explain a held claim: with its VM's set where a launcher waits for it, else by what it asks of nodes itself."""
    group = book.held.group_of.get(key_of(holding), "")
    gpu_set, vmi = book.state.sets.get(group), book.vmi_of(group)
    with_set = _waiting(book, vmi, gpu_set) if gpu_set is not None and vmi is not None and not gpu_set.node else None
    stand, over = _stand(holding), with_set.budgets if with_set is not None else ()
    nodes, place = (with_set.nodes, with_set.place) if with_set is not None and book.goes_with_set(group) else ((), 0)
    if not holding.node and not holding.freed and not book.goes_with_set(group):
        need = held_need(book, book.held.of(group))
        nodes = verdicts(Asked(book, "", need)) if isinstance(need, Need) else ()
        place = book.held.line.place(group)
        if holding.reason is Wait.OVER_BUDGET:
            over = _over(book, holding.namespace, book.charging.asked_by(book.held.of(group)))
    return Explanation(
        holding.namespace,
        holding.claim.name,
        stand.phase,
        stand.summary,
        holding.node,
        reason=None if holding.node else holding.reason,
        place=place,
        nodes=nodes,
        budgets=over,
        kind="claim",
        held=_stands(book, group) or (stand,),
    )


def _stands(book: Book, group: str) -> tuple[ClaimStand, ...]:
    return tuple(map(_stand, book.held.of(group)))


def _stand(holding: Holding) -> ClaimStand:
    claim, vmi = holding.claim, holding.attached
    phase = "Bound" if holding.node else "Lost" if holding.lost else "Pending"
    return ClaimStand(
        claim.name,
        claim.class_name,
        claim.count,
        claim.resource,
        phase,
        holding.node,
        f"{vmi.namespace}/{vmi.name}" if vmi is not None else "",
        _summary(holding),
    )


def _summary(holding: Holding) -> str:
    if holding.freed:
        return "it is being deleted, and its units are free"
    if holding.node:
        return f"on {holding.node}"
    lost = f"its node could not keep it ({holding.lost})" if holding.lost else ""
    return ": ".join(word for word in (lost, holding.message) if word) or "being looked at"


def held(book: Book) -> list[tuple[GpuSet, dict[str, int]]]:
    """Return every set with its units, by namespace and VMI name: what a table of the state shows."""
    sets = sorted(book.state.sets.values(), key=lambda gpu_set: gpu_set.vmi)
    return [(gpu_set, units(gpu_set)) for gpu_set in sets]


def every_claim(book: Book) -> list[tuple[str, ClaimStand]]:
    """Return every held claim with its namespace, by namespace and name."""
    return [(one.namespace, _stand(one)) for _, one in sorted(book.state.holdings.items())]
