"""What a cluster that already runs holds: read from launchers and their pins, and from claims where no launcher speaks.

Pure. A launcher that was let go has its units whatever a status says: it was pinned by a decision, and a status may
not have been written any more. A claim that no launcher uses is where its status says, as far as launchers leave
units there (T4).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from binder.book import Book
from binder.decide_set import claim_name
from binder.evolve import Spent
from binder.following import place_of
from binder.holdings import units_of
from binder.launchers import claim_names, class_entries, gated_launchers, is_ours, newest
from binder.state import GpuSet, Holding
from binder.usage import Amounts, units
from schemas import decisions as d
from schemas.claims import Phase
from schemas.names import GATE, KUBEVIRT_DEVICES
from schemas.objects import ClaimView, PodView, Stamp, VmiView
from schemas.reasons import Unkept

STAMPS_MAX = 8
LOST_BEFORE = "it was Lost when this log took over"
NO_ROOM_LEFT = "launchers or older bookings leave it too few units on node {}, where its status said it was"


def taking_over(book: Book, spent: Spent) -> Iterator[d.Decision]:
    """Book what is found, launchers first; `Adopted` is the last word. What is booked already is passed over."""
    for vmi in vmis(book):
        for found in (admission(book, vmi), booking(book, vmi)):
            if found is None:
                continue
            if spent.is_all() and not spent.is_about(vmi.uid):
                return
            yield found
    for key in sorted(book.state.holdings):
        held = as_shown(book, key)
        if held is None:
            continue
        if spent.is_all():
            return
        yield held
    placed = [one for one in book.state.holdings.values() if one.stamp != Stamp()]
    yield d.Adopted(sum(1 for one in book.state.sets.values() if one.node), len(placed))


def vmis(book: Book) -> list[VmiView]:
    """Return the VMIs, oldest first: of two that name one held claim, the older has it."""
    views = [view for view in book.state.objects["virtualmachineinstances"].values() if isinstance(view, VmiView)]
    return sorted(views, key=lambda vmi: (vmi.created, vmi.namespace, vmi.name))


def admission(book: Book, vmi: VmiView) -> d.LauncherAdopted | None:
    """Take launchers behind our gate, and targets of migrations, for admitted: whoever answered for them is no more."""
    gated = gated_launchers(book.state, vmi, book.index.pods_by_vmi.of(vmi.uid))
    # The booking follows a VMI that migrates to a launcher that was answered for.
    targets = [pod for pod in _let_go(book, vmi) if pod.migration]
    honest = [pod for pod in (*gated, *targets) if pod.admission and not book.is_copied(pod)]
    wanted = [pod.admission for pod in sorted(honest, key=lambda pod: (pod.created, pod.name))][-STAMPS_MAX:]
    known = book.state.admitted.get(vmi.uid)
    before = known.requests if known is not None else ()
    if all(stamp in before for stamp in wanted):
        return None
    others = [stamp for stamp in before if stamp not in wanted]
    return d.LauncherAdopted(_id(vmi), (*others, *wanted)[-STAMPS_MAX:])


def booking(book: Book, vmi: VmiView) -> d.SetAdopted | None:
    """Return the booking that a VMI's launcher shows, None where it shows none, or one that is not ours."""
    if vmi.uid in book.state.sets or not is_ours(vmi):
        return None
    pod = let_go(book, vmi)
    if pod is None:
        return None
    held = _held(book, vmi)
    claims = _claims(book, vmi, pod, held) if held is not None else ()
    if (
        held is None
        or not (claims or held)
        or not _requests(book, pod, GpuSet(_id(vmi), Stamp(), 0, claims, held=held))
    ):
        return None
    node = place_of(pod)
    temporary = [one for one in _let_go(book, vmi) if one.temporary and one.uid != pod.uid and place_of(one) == node]
    former = newest(temporary)
    return d.SetAdopted(_id(vmi), node, pod.name, pod.uid, claims, held, former.uid if former is not None else "")


def let_go(book: Book, vmi: VmiView) -> PodView | None:
    """Return the VMI's launcher that may run: listed, without our gate, pinned or on a node; the last one of them.

    The target of a migration is it once its source is over.
    """
    pods = _let_go(book, vmi)
    plain = [pod for pod in pods if not pod.migration]
    return newest(pod for pod in plain if not pod.temporary) or newest(plain) or newest(pods)


def _let_go(book: Book, vmi: VmiView) -> list[PodView]:
    pods = [book.state.pod(key) for key in sorted(book.index.pods_by_vmi.of(vmi.uid))]
    return [
        pod
        for pod in pods
        if pod is not None
        and pod.launcher
        and not pod.ended
        and GATE not in pod.gates
        and pod.uid in vmi.active_pods
        and place_of(pod)
    ]


def _requests(book: Book, pod: PodView, found: GpuSet) -> bool:
    """Say whether a launcher requests exactly this set, of every resource that is counted."""
    asked, counted = units(found), book.class_resources
    return {name: amount for name, amount in pod.requests.items() if amount and (name in counted or name in asked)} == (
        asked
    )


def _claims(book: Book, vmi: VmiView, pod: PodView, held: tuple[d.HeldClaim, ...]) -> tuple[d.TemplateClaim, ...]:
    """Return the template claims of a VMI: counted as they show (T24), else as its launcher requests."""
    found: list[d.TemplateClaim] = []
    for index, entry in enumerate(class_entries(vmi)):
        name = claim_name(vmi.name, vmi.uid, index)
        view = book.state.claim(f"{vmi.namespace}/{name}")
        resource = view.resource if view is not None and view.owner_uid == vmi.uid else ""
        found.append(d.TemplateClaim(name, entry.class_name, entry.count, resource))
    as_now = tuple(replace(one, resource=one.resource or _resource(book, None, one.class_name)) for one in found)
    if _requests(book, pod, GpuSet(_id(vmi), Stamp(), 0, as_now, held=held)):
        return as_now
    # The class is gone, or counts by another name by now, and nobody wrote down by which.
    unknown = sum(one.count for one in found if not one.resource)
    rest = _rest(pod, units_of([*(one for one in found if one.resource), *held]))
    told = [name for name, amount in rest.items() if amount == unknown]
    only = told[0] if len(told) == 1 else ""
    return tuple(replace(one, resource=one.resource or only) for one in found)


def _rest(pod: PodView, known: Amounts) -> Amounts:
    """Return what a launcher requests of devices beside what is known."""
    rest = {name: amount - known.get(name, 0) for name, amount in sorted(pod.requests.items())}
    return {
        name: amount
        for name, amount in rest.items()
        if amount > 0 and "/" in name and not name.startswith(KUBEVIRT_DEVICES)
    }


def _held(book: Book, vmi: VmiView) -> tuple[d.HeldClaim, ...] | None:
    """Return the held claims that a VMI names, None where one is missing, or an older VMI has it."""
    found: list[d.HeldClaim] = []
    for name in claim_names(vmi.gpus):
        holding = book.state.holding(vmi.namespace, name)
        claim = _counted(book, holding) if holding is not None and holding.attached is None else None
        if claim is None:
            return None
        found.append(claim)
    return tuple(found)


def _counted(book: Book, holding: Holding) -> d.HeldClaim | None:
    claim = holding.claim
    resource = _resource(book, book.state.claim(f"{holding.namespace}/{claim.name}"), claim.class_name)
    return d.HeldClaim(claim.name, claim.uid, claim.class_name, claim.count, resource) if resource else None


def _resource(book: Book, view: ClaimView | None, class_name: str) -> str:
    """Return what a claim counts by: as it shows, else its class's resource of now, '' where nobody knows (T24)."""
    if view is not None and view.resource:
        return view.resource
    known = book.state.gpu_class(class_name)
    return known.resource if known is not None else ""


def as_shown(book: Book, key: str) -> d.HeldAdopted | None:
    """Return where a held claim is that no launcher uses, None for one that was never placed."""
    holding, view = book.state.holdings[key], book.state.claim(key)
    if view is None or holding.freed or holding.attached is not None or holding.stamp != Stamp():
        return None
    claim = _counted(book, holding)
    if claim is None:
        return None
    if view.phase == Phase.LOST:
        return d.HeldAdopted(holding.namespace, (claim,), lost=Unkept.BEFORE, message=LOST_BEFORE)
    if view.phase != Phase.BOUND or not view.node:
        return None
    if is_taken(book, view.node, claim):
        message = NO_ROOM_LEFT.format(view.node)
        return d.HeldAdopted(holding.namespace, (claim,), lost=Unkept.UNITS_GONE, message=message)
    return d.HeldAdopted(holding.namespace, (claim,), view.node)


def is_taken(book: Book, name: str, claim: d.HeldClaim) -> bool:
    """Say whether others have a claim's units on a node. One that offers too few for itself has its grace (C16)."""
    node = book.state.node(name)
    if node is None or not node.allocatable.get(claim.resource, 0):
        return False
    if not book.usage.used.get(name, {}).get(claim.resource, 0):
        return False
    return book.free(node, claim.resource) < claim.count


def _id(vmi: VmiView) -> d.VmiId:
    return d.VmiId(vmi.namespace, vmi.name, vmi.uid)
