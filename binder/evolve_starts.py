"""The fold of starts booked at admission: requests that wait, bookings before VMI and launcher are there (A12, T18)."""

import heapq

from msgspec.structs import replace

from binder import evolve_holdings
from binder.book import Book
from binder.records import AskedStart, Start
from binder.skips import START_NS
from binder.state import GpuSet
from schemas import decisions as d
from schemas.events import StartRequest, StartWithdrawn
from schemas.objects import AnyView, Stamp


def asked(book: Book, sequence: int, event: StartRequest) -> None:
    """A start was asked for: it waits from here until it is decided, in this very input as a rule."""
    book.state.asked[event.uid] = AskedStart(event, sequence, book.state.now_ns)
    heapq.heappush(book.deadlines, (book.state.now_ns + START_NS, event.uid))


def withdrawn(book: Book, event: StartWithdrawn) -> None:
    """Whoever asked gave up: an open request is forgotten, a booking whose VMI was not seen is to end."""
    uid = event.vmi.uid
    known = book.state.asked.get(uid)
    if known is not None and known.event.request == event.request:
        del book.state.asked[uid]
    gpu_set = book.state.sets.get(uid)
    if gpu_set is not None and gpu_set.start is not None and gpu_set.start.request == event.request:
        book.store_set(uid, replace(gpu_set, start=replace(gpu_set.start, withdrawn=True)))
        book.mark(uid)


def booked(book: Book, stamp: Stamp, decision: d.SetBooked) -> None:
    """The set has its node, its claims and its units; the VMI is expected, and its launcher after it."""
    vmi, state = decision.vmi, book.state
    state.asked.pop(vmi.uid, None)
    start = Start(decision.request, state.now_ns)
    known = state.sets.get(vmi.uid)
    if known is not None and known.node:
        if known.start is not None:
            book.store_set(vmi.uid, replace(known, start=start))
        return
    gpu_set = GpuSet(
        vmi,
        stamp,
        state.now_ns,
        decision.claims,
        held=decision.held,
        node=decision.node,
        requests=decision.requests,
        start=start,
    )
    book.store_set(vmi.uid, gpu_set)
    evolve_holdings.attach(book, stamp, vmi, decision.held)
    evolve_holdings.follow(book, stamp, gpu_set)


def answered(book: Book, decision: d.StartHeld | d.Refused) -> None:
    """A start was told what it waits for, or waits no more."""
    for uid, known in list(book.state.asked.items()) if book.state.asked else ():
        if known.event.request != decision.request:
            continue
        if isinstance(decision, d.StartHeld):
            book.state.asked[uid] = replace(known, hold=decision.reason)
        else:
            del book.state.asked[uid]


def seen(book: Book, vmi: AnyView | None) -> None:
    """The VMI is there, and may own claims: these are said once more, to be written."""
    gpu_set = book.state.sets.get(vmi.uid) if vmi is not None else None
    if gpu_set is not None and gpu_set.start is not None:
        book.store_set(gpu_set.vmi.uid, replace(gpu_set, start=None, missing=True))
        book.mark(gpu_set.vmi.uid)


def wake(book: Book, uid: str) -> None:
    """Note that a VMI's time is over, and forget a request that nobody can wait for any more."""
    state = book.state
    known, gpu_set = state.asked.get(uid), state.sets.get(uid)
    if known is not None and known.at_ns + START_NS <= state.now_ns:
        del state.asked[uid]
    start = gpu_set.start if gpu_set is not None else None
    if gpu_set is not None and start is not None and not start.due and start.at_ns + START_NS <= state.now_ns:
        book.store_set(uid, replace(gpu_set, start=replace(start, due=state.events_seq)))
