"""What to do about licences: copies that are due, copies that are not any more, classes whose source is missing.

A source that is missing takes nothing away (L3). One copy's trouble is its own: the others go on (C52).
"""

from collections.abc import Iterator

from binder.book import Book
from binder.evolve import Spent
from binder.licence_copies import LicenceCopy
from binder.licences import (
    NAME_TAKEN,
    classes_by_copy,
    is_entitled,
    is_ours,
    licence_copy,
    licence_source,
    licences_due,
    source_trouble,
)
from schemas import decisions as d
from schemas.licences import is_licensed
from schemas.names import CLASS_LABEL, LICENCE_TOKEN_KEY
from schemas.objects import ClassView
from schemas.reasons import Licence


def licensing(book: Book, spent: Spent) -> Iterator[d.Decision]:
    """Decide on the copies and classes that something changed about."""
    state = book.state
    if not licences_due(state):
        return
    classes = classes_by_copy(state)
    for key in sorted(state.dirty_licences):
        if spent.is_all():
            return
        namespace, _, name = key.partition("/")
        about_class = not namespace
        said = _about_class(book, name) if about_class else _about_copy(book, key, classes.get(name))
        if said is not None:
            yield said


def _about_class(book: Book, name: str) -> d.Decision | None:
    """Tell of a source that is missing, and when it is there (again): once per change (L3)."""
    state, view = book.state, book.state.gpu_class(name)
    if view is None:
        return None
    known = state.licence_troubles.get(view.name)
    trouble = source_trouble(licence_source(state, view.licence_secret)) if is_licensed(view) else Licence.FOUND
    if trouble == (known.reason if known is not None and known.uid == view.uid else Licence.FOUND):
        return None
    secret = f"the Secret {view.licence_secret}"
    message = {
        Licence.FOUND: "nothing is missing: the licence is copied to every namespace that may use vGPUs",
        Licence.NO_SOURCE: f"{secret} is not in the licence namespace: copies that exist are kept, none are made",
        Licence.NO_KEY: f"{secret} has no key {LICENCE_TOKEN_KEY}: copies that exist are kept, none are made",
    }[trouble]
    return d.LicenceMissing(view.name, view.uid, trouble is not Licence.FOUND, trouble.value, message)


def _about_copy(book: Book, key: str, view: ClassView | None) -> d.Decision | None:
    namespace, _, name = key.partition("/")
    known = book.state.licences.get(key)
    if view is None or not is_entitled(book.state.namespace(namespace)):
        return _not_due(book, key, known)
    source = licence_source(book.state, view.licence_secret)
    if source is None or source_trouble(source) is not Licence.FOUND:
        return None
    copy = licence_copy(book.state, key)
    if copy is not None and not copy.deleting and is_ours(copy) and copy.digest == source.digest:
        return None
    if known is not None and known.digest == source.digest:
        if known.refused and known.told != known.refused:
            return d.LicenceBlocked(namespace, name, _obstacle(known))
        if book.state.now_ns < known.retry_ns:
            return None
    return d.LicenceCopied(namespace, name, view.name, source.key, source.digest)


def _obstacle(known: LicenceCopy) -> str:
    if known.refused == NAME_TAKEN:
        return (
            f"the licence of GPU class {known.gpu_class} can't be copied here: a Secret of this name stands that "
            f"gpubinder did not write (label {CLASS_LABEL} and stamp); it is left alone: rename or delete it"
        )
    return f"the licence of GPU class {known.gpu_class} can't be copied here: the API server says {known.refused}"


def _not_due(book: Book, key: str, known: LicenceCopy | None) -> d.LicenceDropped | None:
    """Have the copy gone that we wrote and nobody changed; whatever else stands there is left alone (L2, L4)."""
    namespace, _, name = key.partition("/")
    copy, home = licence_copy(book.state, key), book.state.namespace(namespace)
    # A namespace that goes takes its Secrets along.
    stands = copy is not None and not copy.deleting and is_ours(copy) and home is not None and not home.deleting
    uid = copy.uid if copy is not None and stands else ""
    if known is None:
        return d.LicenceDropped(namespace, name, uid) if uid else None
    if known.going and known.going == uid and book.state.now_ns < known.retry_ns:
        return None
    return d.LicenceDropped(namespace, name, uid)
