"""May this be written? What declares units against the budgets of its tenant, an order against what there is now.

Nothing is booked here: what passes and is then placed is checked against what is held, once more (B2, B3, O1).
So what passes by a race is declared, and waits; nobody holds more than there is.
"""

from msgspec.structs import replace

from binder.book import Book
from binder.budgets import first_over, total_of
from binder.declaring import VMIS, Declarer, declarer_of
from binder.placement import Need, fit, kept_from
from binder.rules.gpu_sets import Objection, no_entitlement, units_max
from binder.rules.serving import every_class_tolerates
from schemas import decisions as d
from schemas.events import OrderRequest, WriteRequest
from schemas.objects import ClassView
from schemas.reasons import Refusal


def answer_write(book: Book, request: WriteRequest) -> d.WritePassed | d.Refused:
    """Answer a write that declares units (B2): refused where a budget has no room for what is declared beside it.

    Only what becomes more is asked for, so that a decrease or another change passes also where too much is declared.
    """
    declarer = declarer_of(request.kind, request.view)
    if declarer is not None and declarer.kind == VMIS:
        declarer = _in_its_place(book, request, declarer)
    said = _over(book, request.namespace, book.declared.rise(declarer)) if declarer is not None else None
    if said is None:
        return d.WritePassed(request.request, request.namespace, request.name)
    return d.Refused(request.request, request.namespace, request.name, said.reason, said.sentence)


def _in_its_place(book: Book, request: WriteRequest, declarer: Declarer) -> Declarer:
    """Return a VMI as it counts: what KubeVirt makes, within its owner and after the VMI of its name before it.

    An instancetype adds annotations that the VM's template does not show: then the VMI declares more than its owner.
    Whoever else writes one is no KubeVirt: the owner that it names declares nothing in its place (T25).
    """
    if not request.own:
        return replace(declarer, owner="")
    former = book.state.vmi(f"{request.namespace}/{request.name}")
    return replace(declarer, uid=former.uid) if former is not None else declarer


def answer_order(book: Book, request: OrderRequest) -> d.WritePassed | d.Refused:
    """Answer an order: refused with the numbers where it can't be met now (O1)."""
    view = next((view for view in request.classes if view.name == request.class_name), None)
    said = _class_unfit(request, view)
    if said is None and view is not None:
        said = _too_many(book, request, view)
    if said is None:
        return d.WritePassed(request.request, request.namespace, request.name)
    return d.Refused(request.request, request.namespace, request.name, said.reason, said.sentence)


def _over(book: Book, namespace: str, asked: dict[str, int]) -> Objection | None:
    over = first_over(book.budgets, namespace, asked, book.declared.units)
    if over is None:
        return None
    return Objection(
        Refusal.OVER_BUDGET,
        f"budget of {over.namespace}: {over.key} is limited to {over.hard}, {over.used} are declared, "
        f"{over.asked} more are asked; delete VMs, pools or claims there that declare some, or have the budget raised",
    )


def _class_unfit(request: OrderRequest, view: ClassView | None) -> Objection | None:
    """What the class itself says against an order, whatever is free of it."""
    named = f'the GPU class "{request.class_name}"'
    if view is None:
        remedy = "choose one that `kubectl get gpuclasses` lists"
        return Objection(Refusal.CLASS_NOT_FOUND, f"{named} does not exist: {remedy}")
    if view.deleting:
        return Objection(Refusal.CLASS_DELETED, f"{named} is being deleted: choose another class")
    if view.conflict:
        return Objection(
            Refusal.CLASS_CONFLICT,
            f"the resource name {view.resource} of {named} belongs to an older class (ResourceNameConflict): choose "
            "that class, or ask the platform operator to give this one a resource name of its own",
        )
    if request.count > units_max(view):
        most = units_max(view)
        return Objection(
            Refusal.OVER_MAXIMUM,
            f"{request.count} units of {named} are asked, of which one claim can have {most} at most: lower spec.count",
        )
    return no_entitlement(view, request.home, f"{named} is asked for")


def _too_many(book: Book, request: OrderRequest, view: ClassView) -> Objection | None:
    """More than a budget allows, or than there is now: nothing is known of that while the picture is not whole."""
    said = _over(book, request.namespace, total_of([(request.class_name, request.count)]))
    if said is not None:
        return said
    if book.state.adopting or not book.may_place_claims():
        return Objection(
            Refusal.NOT_READY, "what is free of each GPU class is not known yet, the cluster is still read: try again"
        )
    need = Need({view.resource: request.count}, {}, (view.tolerations,), {}, None, (), kept=kept_from(book))
    if fit(book, need):
        return None
    return Objection(Refusal.NO_UNITS, _short(book, request, view))


def _short(book: Book, request: OrderRequest, view: ClassView) -> str:
    """Say what is free of a class on nodes that serve it, as its status counts that."""
    free = most = 0
    for _, name in book.usage.ranked.get(view.resource, ()):
        node = book.state.node(name)
        if node is None or not node.ready or node.unschedulable or node.deleting:
            continue
        if every_class_tolerates((view.tolerations,), node):
            left = max(book.free(node, view.resource), 0)
            free, most = free + left, max(most, left)
    asked = f'{request.count} units of the GPU class "{view.name}" are asked'
    if request.count > free:
        return f"{asked}, {free} are free now: ask for fewer, or try again later"
    if request.count > most:
        return (
            f"{asked} on one node, {free} are free now, {most} at most on one node: ask for fewer, or try again later"
        )
    return f"{asked}, and the node that has them free is kept for a VM that has waited longer: try again later"
