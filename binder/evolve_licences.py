"""The fold of licences: what classes, namespaces, Secrets, decisions and outcomes do to copies and their wants."""

import heapq

from msgspec.structs import replace

from binder.book import Book
from binder.licence_copies import LicenceCopy, LicenceTrouble
from binder.licences import (
    ACTION_SHOW,
    LICENCE_DECISIONS,
    class_key,
    is_entitled,
    licence_key,
    licences_due,
)
from schemas import decisions as d
from schemas.events import Outcome
from schemas.licences import SOURCES, copy_name, is_licensed
from schemas.objects import AnyView, ClassView, NamespaceView, SecretView, Stamp

SECOND = 1_000_000_000
RETRY_NS_FIRST = 60 * SECOND
RETRY_NS_MAX = 300 * SECOND
"""A write that was refused, or of which nothing is seen, is said again after a minute, doubling to five (C52)."""

AT_ONCE_MAX = 3
SETTLED_NS = 600 * SECOND
"""A copy that somebody changes is restored at once so many times within this long; then once a minute."""


def class_changed(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Look at a class's copies everywhere, if its licence changed."""
    sides = [side if isinstance(side, ClassView) else None for side in (before, after)]
    if _licence(sides[0]) == _licence(sides[1]):
        return
    name = next(side.name for side in sides if side is not None)
    known = book.state.licence_troubles.get(name)
    if known is not None and (sides[1] is None or sides[1].uid != known.uid):
        del book.state.licence_troubles[name]
    _mark_class(book, name)


def _licence(view: ClassView | None) -> tuple[str, str]:
    return (view.uid, view.licence_secret) if view is not None and is_licensed(view) else ("", "")


def _mark_class(book: Book, name: str) -> None:
    dirty, state, copy = book.state.dirty_licences, book.state, copy_name(name)
    dirty[class_key(name)] = True
    for namespace, view in state.objects["namespaces"].items():
        key = f"{namespace}/{copy}"
        if (isinstance(view, NamespaceView) and is_entitled(view)) or key in state.licences:
            dirty[key] = True
    # Copies from before this log are found by what they look like.
    for key, copied in state.objects["licencecopies"].items():
        if copied.name == copy:
            dirty[key] = True


def namespace_changed(book: Book, before: AnyView | None, after: AnyView | None) -> None:
    """Look at a namespace's copies, if its entitlement changed, or it goes."""
    sides = [side if isinstance(side, NamespaceView) else None for side in (before, after)]
    if sides[0] is not None and sides[1] is not None and is_entitled(sides[0]) == is_entitled(sides[1]):
        return
    name = next(side.name for side in sides if side is not None)
    for class_name in book.state.objects["gpuclasses"]:
        book.state.dirty_licences[f"{name}/{copy_name(class_name)}"] = True


def read_anew(known: AnyView, view: AnyView) -> bool:
    """Say whether one version of a Secret has another digest: the key was exchanged, and it was read under the new one.

    Who kept the old digest would have copies written that no projector can make (T16).
    """
    if not isinstance(known, SecretView) or not isinstance(view, SecretView):
        return False
    return known.uid == view.uid and known.rv == view.rv and known.digest != view.digest


def secret_changed(book: Book, kind: str, before: AnyView | None, after: AnyView | None) -> None:
    """Look at the copies of a source, or at the one copy that was seen."""
    view = after if after is not None else before
    assert isinstance(view, SecretView)
    if kind == SOURCES:
        for name, gpu_class in book.state.objects["gpuclasses"].items():
            if isinstance(gpu_class, ClassView) and gpu_class.licence_secret == view.name:
                _mark_class(book, name)
        return
    book.state.dirty_licences[view.key] = True
    known = book.state.licences.get(view.key)
    if known is None:
        return
    if isinstance(after, SecretView) and after.stamp >= known.stamp and not known.seen:
        # What was written is seen; what becomes of it from here on may be answered at once, a few times.
        retry_ns = 0 if known.times <= AT_ONCE_MAX else known.retry_ns
        book.store_licence(view.key, replace(known, seen=True, retry_ns=retry_ns, refused="", told="", fails=0))
    elif after is None and known.going:
        book.store_licence(view.key, None)


def copied(book: Book, stamp: Stamp, decision: d.LicenceCopied) -> None:
    """A copy is to be written."""
    now_ns, known = book.state.now_ns, book.state.licences.get(licence_key(decision))
    again = known is not None and known.digest == decision.digest and known.at_ns + SETTLED_NS > now_ns
    fresh = LicenceCopy(
        gpu_class=decision.gpu_class,
        stamp=stamp,
        source=decision.source,
        digest=decision.digest,
        at_ns=now_ns,
        times=known.times + 1 if known is not None and again else 1,
        told=known.told if known is not None else "",
        fails=known.fails if known is not None and again else 0,
        retry_ns=now_ns + RETRY_NS_FIRST,
    )
    book.store_licence(licence_key(decision), fresh)


def dropped(book: Book, stamp: Stamp, decision: d.LicenceDropped) -> None:
    """A copy is to go; one that nobody saw is forgotten."""
    key = licence_key(decision)
    if not decision.uid:
        book.store_licence(key, None)
        return
    known = book.state.licences.get(key)
    gpu_class = known.gpu_class if known is not None else ""
    now_ns = book.state.now_ns
    going = LicenceCopy(gpu_class, stamp, going=decision.uid, at_ns=now_ns, retry_ns=now_ns + RETRY_NS_FIRST)
    book.store_licence(key, going)


def blocked(book: Book, decision: d.LicenceBlocked) -> None:
    """Why a copy can't be written was told."""
    key = licence_key(decision)
    known = book.state.licences.get(key)
    if known is not None:
        book.store_licence(key, replace(known, told=known.refused))


def missing(book: Book, stamp: Stamp, decision: d.LicenceMissing) -> None:
    """What was said of a class's licence."""
    trouble = LicenceTrouble(decision.uid, decision.missing, decision.reason, decision.message, stamp)
    book.state.licence_troubles[decision.name] = trouble


def hear(book: Book, outcome: Outcome) -> None:
    """What became of a write about a licence; of an older decision than the newest it says nothing (T23)."""
    if outcome.action == ACTION_SHOW:
        said = book.state.licence_troubles.get(outcome.name)
        if said is not None and said.stamp == outcome.stamp and not outcome.code:
            book.state.licence_troubles[outcome.name] = replace(said, confirmed=outcome.stamp)
        return
    key = f"{outcome.namespace}/{outcome.name}"
    known = book.state.licences.get(key)
    if known is None or known.stamp != outcome.stamp:
        return
    if not outcome.code:
        book.store_licence(key, replace(known, confirmed=outcome.stamp, refused="", told="", fails=0))
        return
    wait = min(RETRY_NS_FIRST << min(known.fails, 3), RETRY_NS_MAX)
    why = outcome.reason or str(outcome.code)
    again_ns = book.state.now_ns + wait
    book.store_licence(key, replace(known, refused=why, fails=known.fails + 1, retry_ns=again_ns))
    book.state.dirty_licences[key] = True


def wake(book: Book) -> None:
    """Look again at what has waited for its time."""
    now_ns, dues = book.state.now_ns, book.licence_dues
    while dues and dues[0][0] <= now_ns:
        at_ns, key = heapq.heappop(dues)
        known = book.state.licences.get(key)
        if known is not None and known.retry_ns == at_ns:
            book.store_licence(key, replace(known, retry_ns=0))
            book.state.dirty_licences[key] = True


def settle(book: Book, decided: tuple[d.Decision, ...], *, bounded: bool) -> None:
    """End one input: forget what was looked at, unless its bound stopped it, or the picture is not whole."""
    dirty = book.state.dirty_licences
    if not licences_due(book.state):
        return
    if not bounded:
        dirty.clear()
        return
    for decision in decided:
        if isinstance(decision, LICENCE_DECISIONS):
            dirty.pop(licence_key(decision), None)
