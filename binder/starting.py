"""Starts under policy Refuse: the whole set booked on one node before VMI and launcher are there, or refused (A12).

A start is decided in the input that asks for it, behind everyone who waits at the gate. Where that can't be, its
request waits in the state: the picture is not whole, placing is paused, or an earlier VMI of its name still stands.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from binder.book import Book
from binder.budgets import first_over, sentence
from binder.decide_set import MESSAGES, claim_name, need_of, why
from binder.evolve import Spent
from binder.holdings import as_decided, own_units
from binder.naming import held_claims
from binder.placement import Need, fit, kept_from, nearest
from binder.records import AskedStart
from binder.rules.starts import answer_start, entries_of, refusal
from binder.settings import is_paused
from binder.state import GpuSet
from binder.usage import claims_of, units
from schemas import decisions as d
from schemas.events import StartRequest
from schemas.names import POLICY_REFUSE
from schemas.objects import PodView, Stamp, VmiView
from schemas.reasons import Hold, Refusal, Release, Wait


def hearing(book: Book, event: StartRequest) -> Iterator[d.Decision]:
    """Answer a start that room does not decide, or say why it has to wait; else the pass of this input decides it."""
    objection = answer_start(_counted(book, event))
    if objection is not None:
        yield objection
        return
    hold = _held_up(book)
    if hold is not None:
        yield d.StartHeld(event.request, event.vmi, hold)


def left_over(book: Book, event: StartRequest) -> Iterator[d.StartHeld]:
    """Say of a start that its own input did not come to that it is decided next: whoever asked waits for it."""
    known = book.state.asked.get(event.uid)
    if known is not None and known.event.request == event.request and known.hold is None:
        yield d.StartHeld(event.request, event.vmi, Hold.IN_LINE)


def starts_due(book: Book) -> bool:
    """Say whether a start can be decided that was not yet."""
    if not book.state.asked or _held_up(book) is not None:
        return False
    return any(one.hold is not Hold.NAMESAKE or not _is_run(book, one.event.vmi) for one in book.state.asked.values())


def starting(book: Book, spent: Spent) -> Iterator[d.Decision]:
    """Decide the starts that were asked for, in the order in which they were."""
    if not starts_due(book):
        return
    line = sorted(book.state.asked.values(), key=lambda asked: asked.sequence)
    newest = {_vm(one.event.vmi): one.sequence for one in line}
    for one in line:
        if spent.is_all():
            return
        if one.event.uid in book.state.asked:
            yield from _start(book, one, is_newest=newest[_vm(one.event.vmi)] == one.sequence)


def dry(book: Book, event: StartRequest) -> d.SetBooked | d.Refused:
    """Return what a start would be answered now, booking nothing (T19)."""
    counted = _counted(book, event)
    return answer_start(counted) or _decided(book, counted)


def _counted(book: Book, event: StartRequest) -> StartRequest:
    """Return a start whose held claims count as was decided (T24)."""
    return replace(event, asked=as_decided(book.state, event.asked))


def _held_up(book: Book) -> Hold | None:
    if book.behind or book.state.adopting:
        return Hold.NOT_WHOLE
    return Hold.PAUSED if is_paused(book.state, book.settings) else None


def _start(book: Book, one: AskedStart, *, is_newest: bool) -> Iterator[d.Decision]:
    event, vmi = one.event, one.event.vmi
    known = book.state.sets.get(vmi.uid)
    if known is not None and known.node:
        # Asked once more for one VMI: it has its place.
        yield d.SetBooked(event.request, known.vmi, known.claims, known.node, known.requests, known.held)
        return
    if not is_newest:
        yield refusal(event, Refusal.SUPERSEDED, "was asked for again since, and that request is the one that counts")
        return
    for rival in book.starts.rivals(_vm(vmi), vmi.uid):
        if rival.start is not None and rival.vmi.uid not in book.state.admitted:
            # One name is one VMI: the one before was never stored, or is not going to be (T18).
            yield d.SetReleased(rival.vmi, rival.node, Release.SUPERSEDED)
            yield d.SetClosed(rival.vmi)
    if _is_run(book, vmi):
        if one.hold is not Hold.NAMESAKE:
            yield d.StartHeld(event.request, vmi, Hold.NAMESAKE)
        return
    yield _decided(book, _counted(book, event))


def _vm(vmi: d.VmiId) -> str:
    return f"{vmi.namespace}/{vmi.name}"


def _is_run(book: Book, vmi: d.VmiId) -> bool:
    """Say whether an earlier VMI of that name is seen, or still has units: those may be what the new one needs."""
    key = _vm(vmi)
    view = book.state.vmi(key)
    return (view is not None and view.uid != vmi.uid) or any(one.node for one in book.starts.rivals(key, vmi.uid))


def _decided(book: Book, event: StartRequest) -> d.SetBooked | d.Refused:
    """Book the whole set on one node, or refuse with the reason of the node that came nearest, and the numbers."""
    vmi = _vmi(event)
    held = held_claims(book, vmi)
    if isinstance(held, Wait):
        return _no(event, held, why(book, vmi, held))
    entries = entries_of(event)
    claims = tuple(
        d.TemplateClaim(claim_name(vmi.name, vmi.uid, place), one.class_name, one.count, one.resource)
        for place, one in enumerate(one for one in entries if not one.claim)
    )
    gpu_set = GpuSet(event.vmi, Stamp(), 0, claims, held=held)
    asked = units(gpu_set)
    if asked != _devices(entries):
        return _no(event, Wait.REQUESTS_MISMATCH, "its held claims count by another resource than its devices")
    requests = {**event.launcher.requests, **asked}
    need = need_of(book, vmi, gpu_set, _launcher(event, requests))
    if isinstance(need, Wait):
        return _no(event, need, MESSAGES[need])
    over = first_over(book.budgets, vmi.namespace, book.charging.asked(gpu_set))
    if over is not None:
        return _no(event, Wait.OVER_BUDGET, sentence(over))
    holdings = [book.state.holding(vmi.namespace, claim.name) for claim in held]
    own = own_units(one for one in holdings if one is not None)
    # It is behind all who wait: what is kept for one of them is not for it.
    need = replace(need, own=own, kept=kept_from(book))
    node = fit(book, need)
    if node:
        return d.SetBooked(event.request, event.vmi, claims, node, requests, held)
    reason = nearest(book, need)
    return _no(event, reason, f"{MESSAGES[reason]} ({_numbers(book, gpu_set, need)})")


def _no(event: StartRequest, reason: Wait, sentence: str) -> d.Refused:
    known = {str(one) for one in Refusal}
    word = Refusal(reason.value) if reason.value in known else Refusal.NOT_COMPLETE
    return refusal(event, word, f"can't start now: {sentence}")


def _numbers(book: Book, gpu_set: GpuSet, need: Need) -> str:
    """Tell what is asked of each class, how many nodes offer that, and how much is free on the one with most."""
    told = []
    for claim in claims_of(gpu_set):
        ranked = book.usage.ranked.get(claim.resource, [])
        most = max(ranked[-1][0], 0) if ranked else 0
        offered = f"offered by {len(ranked)} node{'' if len(ranked) == 1 else 's'}, at most {most} free on one"
        told.append(f"{claim.class_name} x{claim.count} of {need.units[claim.resource]} asked, {offered}")
    return "; ".join(told)


def _devices(entries: tuple[d.GpuEntry, ...]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in entries:
        total[one.resource] = total.get(one.resource, 0) + one.count
    return total


def _vmi(event: StartRequest) -> VmiView:
    """Return the VMI as it will be seen, as far as rules read it."""
    vmi = event.vmi
    return VmiView(
        vmi.name,
        vmi.uid,
        "",
        vmi.namespace,
        gpus=event.asked.gpus,
        policy=POLICY_REFUSE,
        volumes=event.launcher.volumes,
    )


def _launcher(event: StartRequest, requests: dict[str, int]) -> PodView:
    """Return the launcher as far as it is known before KubeVirt renders it."""
    said = event.launcher
    return PodView(
        "", "", "", event.vmi.namespace, requests=requests, node_selector=said.node_selector, terms=said.terms
    )
