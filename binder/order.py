"""Where ties are broken: the order in which sets are served, launchers picked, keys walked (T10)."""

from collections.abc import Iterable

from binder.book import Book
from binder.launchers import launcher_of

Rank = tuple[int, int, str, str, str]


def rank(book: Book, uid: str) -> Rank:
    """Return a set's place in the queue: priority class, the VM's first wait, namespace, name, uid."""
    state = book.state
    key = book.vmi_keys.get(uid, "")
    vmi = state.vmi(key)
    pod = launcher_of(book, vmi) if vmi is not None else None
    first = state.first_wait.get(key, state.now_ns)
    namespace, _, name = key.partition("/")
    return (-(pod.priority if pod is not None else 0), first, namespace, name, uid)


def in_line(book: Book, uids: Iterable[str]) -> list[str]:
    """Return the sets in the order they are served."""
    return sorted(uids, key=lambda uid: rank(book, uid))


