"""The fold of sets: what each decision, each outcome and each seen pin does to one VMI's set."""

import heapq

from msgspec.structs import replace

from binder import evolve_holdings, evolve_licences, evolve_starts
from binder.book import ADMITTED_KEPT_NS, Book
from binder.evolve_skips import look_again
from binder.licences import LICENCE_ACTIONS
from binder.records import Kept
from binder.skips import LEAVING_NS, STUCK_NS
from binder.state import Admitted, GpuSet, Leaving, Skip, Touch, awaits_launcher
from schemas import decisions as d
from schemas.events import Outcome
from schemas.objects import Stamp
from schemas.reasons import Release, Unkept

ADMITTED_PER_VMI_MAX = 8
GATHERED_ANEW = (Release.NODE_UNKEPT, Release.COMMANDED)
"""Bookings that end while their launcher waits: its set is looked at in the same pass."""


def opened(book: Book, stamp: Stamp, decision: d.SetOpened) -> None:
    """The set has its claims; said again for claims deleted under it, the booking stays."""
    known = _known(book, stamp, decision.vmi)
    book.store_set(
        decision.vmi.uid, replace(known, stamp=stamp, claims=decision.claims, held=decision.held, missing=False)
    )
    evolve_holdings.attach(book, stamp, decision.vmi, decision.held)


def placed(book: Book, stamp: Stamp, decision: d.SetPlaced) -> None:
    """The set is booked on a node for one pod."""
    uid, vmi = decision.vmi.uid, decision.vmi
    known = _known(book, stamp, vmi)
    pod = book.state.pod(f"{vmi.namespace}/{decision.pod}")
    # The launcher after a temporary pod takes over its booking; until that pod is gone they share it.
    former = known.pod_uid if known.node and known.pod_uid != decision.pod_uid else known.former
    book.state.first_wait.pop(f"{vmi.namespace}/{vmi.name}", None)
    book.store_set(
        uid,
        replace(
            known,
            stamp=stamp,
            former=former,
            node=decision.node,
            pod=decision.pod,
            pod_uid=decision.pod_uid,
            terms=decision.terms,
            requests=pod.requests if pod is not None else {},
            temporary=pod.temporary if pod is not None else False,
            pinned=False,
            released=None,
            reason=None,
            message="",
            over=None,
            told=Stamp(),
            refused="",
            refusal="",
            stuck_ns=0,
            retry_ns=0,
        ),
    )
    evolve_holdings.follow(book, stamp, book.state.sets[uid])


def waits(book: Book, stamp: Stamp, decision: d.SetWaits) -> None:
    """The set was told why it waits; the VM's first wait is kept over its VMIs."""
    uid, vmi = decision.vmi.uid, decision.vmi
    book.state.first_wait.setdefault(f"{vmi.namespace}/{vmi.name}", book.state.now_ns)
    known = _known(book, stamp, vmi)
    said = replace(known, stamp=stamp, reason=decision.reason, message=decision.message, over=decision.over, told=stamp)
    book.store_set(uid, said)
    evolve_holdings.follow(book, stamp, book.state.sets[uid])


def released(book: Book, stamp: Stamp, decision: d.SetReleased) -> None:
    """The booking ended: its units are free. After a refused write the next try has to wait."""
    uid = decision.vmi.uid
    gpu_set = _known(book, stamp, decision.vmi)
    fails, retry_ns = gpu_set.fails, 0
    if decision.reason is Release.PIN_REFUSED:
        fails += 1
        retry_ns = book.state.now_ns + evolve_holdings.back_off_ns(fails)
    book.store_set(
        uid,
        GpuSet(
            gpu_set.vmi,
            stamp,
            gpu_set.opened_ns,
            gpu_set.claims,
            gpu_set.confirmed,
            gpu_set.held,
            released=decision.reason,
            missing=gpu_set.missing,
            given_up=gpu_set.given_up,
            refused=gpu_set.refused,
            fails=fails,
            retry_ns=retry_ns,
        ),
    )
    evolve_holdings.follow(book, stamp, book.state.sets[uid])
    if decision.reason in GATHERED_ANEW:
        book.mark(uid)


def vmi_given_up(book: Book, stamp: Stamp, decision: d.VmiGivenUp) -> None:
    """The VMI is to go; its units stay booked until its pod has gone.

    By an operator's hand nothing is wrong with the node, so that the VM skips it for a while.
    """
    vmi, now_ns = decision.vmi, book.state.now_ns
    leaving = Leaving(decision.node, decision.reason, decision.message, stamp, now_ns)
    book.store_set(vmi.uid, replace(_known(book, stamp, vmi), stamp=stamp, leaving=leaving))
    if decision.reason is Unkept.COMMANDED:
        book.skips.put(f"{vmi.namespace}/{vmi.name}", decision.node, Skip(now_ns, 1, decision.reason))


def _known(book: Book, stamp: Stamp, vmi: d.VmiId) -> GpuSet:
    """Return the set as it stands, else a new one: the fold is total, also over a log that skips a beginning."""
    known = book.state.sets.get(vmi.uid)
    return known if known is not None else GpuSet(vmi, stamp, book.state.now_ns)


def node_kept(book: Book, decision: d.NodeKept) -> None:
    """A node is kept for one alone, or for nobody any more: it opens to others, or closes to those behind."""
    before, node = book.state.kept, decision.node
    book.state.kept = Kept(decision.vmi, node, book.rank(decision.vmi.uid), book.state.now_ns)
    book.patience.review(book.state.kept)
    if before is not None and before.node:
        book.touch(before.node, Touch.GROWN | Touch.SHRUNK)
    if node:
        book.touch(node, Touch.SHRUNK)


def closed(book: Book, stamp: Stamp, decision: d.SetClosed) -> None:
    """The set is forgotten; its VM's first wait too, unless the VM is there to come back."""
    vmi = decision.vmi
    evolve_holdings.detach(book, stamp, vmi)
    book.store_set(vmi.uid, None)
    forget_wait(book, f"{vmi.namespace}/{vmi.name}")


def forget_wait(book: Book, key: str) -> None:
    """Drop since when a VM waits, once neither it nor a VMI of its name is there."""
    if book.state.vm(key) is None and book.state.vmi(key) is None:
        book.state.first_wait.pop(key, None)


def admitted(book: Book, decision: d.PodAdmitted) -> None:
    """A launcher create was answered: its stamp marks the pod as the admitted one (T25)."""
    uid = decision.vmi.uid
    known = book.state.admitted.get(uid)
    requests = (*(known.requests if known else ()), decision.request)[-ADMITTED_PER_VMI_MAX:]
    book.store_admitted(uid, Admitted(requests, book.state.now_ns))
    book.mark(uid)


def wake(book: Book) -> None:
    """Let what has waited for its time go on: refused writes, stuck pods, skips. Admissions of nobody are forgotten."""
    now_ns = book.state.now_ns
    while book.deadlines and book.deadlines[0][0] <= now_ns:
        at_ns, uid = heapq.heappop(book.deadlines)
        gpu_set = book.state.sets.get(uid)
        if gpu_set is not None and 0 < gpu_set.retry_ns <= now_ns:
            book.store_set(uid, replace(gpu_set, retry_ns=0))
            book.mark(uid)
        evolve_holdings.rested(book, uid)
        evolve_starts.wake(book, uid)
        if gpu_set is not None and 0 < gpu_set.stuck_ns <= now_ns - STUCK_NS:
            book.mark(uid)
        if gpu_set is not None and gpu_set.leaving and gpu_set.leaving.at_ns + LEAVING_NS == at_ns:
            book.troubles.look(gpu_set.node)
        known = book.state.admitted.get(uid)
        if known is not None and known.at_ns + ADMITTED_KEPT_NS <= now_ns:
            if uid not in book.index.vmis:
                book.store_admitted(uid, None)
            elif gpu_set is not None and awaits_launcher(gpu_set):
                # To a VMI that ended none can come any more.
                book.mark(uid)
    for uid in book.patience.ended():
        book.mark(uid)
        book.line_up(uid)
    for key in book.skips.ended():
        look_again(book, key)
    book.troubles.wake()


def hear(book: Book, outcome: Outcome) -> None:
    """What became of a write; of an older decision than the newest it says nothing (T23)."""
    if outcome.action in LICENCE_ACTIONS:
        evolve_licences.hear(book, outcome)
        return
    if not outcome.vmi_uid:
        evolve_holdings.hear(book, outcome)
        return
    gpu_set = book.state.sets.get(outcome.vmi_uid)
    if gpu_set is None or outcome.stamp != gpu_set.stamp:
        return
    if not outcome.code:
        book.store_set(outcome.vmi_uid, replace(gpu_set, confirmed=outcome.stamp, given_up=None))
        return
    if gpu_set.pod_uid and not gpu_set.pinned:
        refused = evolve_holdings.refusal_of(outcome)
        book.store_set(outcome.vmi_uid, replace(gpu_set, refused=refused))
        book.mark(outcome.vmi_uid)
