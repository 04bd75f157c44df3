"""What to do about GPU classes: each waits, when it is deleted, for what uses it, and no longer (K2)."""

from collections.abc import Iterator

from binder.book import Book
from schemas import decisions as d


def guarding(book: Book) -> Iterator[d.ClassGuarded | d.ClassFreed]:
    """Put our finalizer on classes that lack it, and take it off those that are being deleted and used by nobody."""
    for name in sorted(book.class_use.due) if book.class_use.due else ():
        view = book.state.gpu_class(name)
        if view is not None:
            yield d.ClassFreed(name, view.uid) if view.deleting else d.ClassGuarded(name, view.uid)
