"""JSON that nests deeper than Python reads it: what an API server takes, no tenant's object may stop us with.

An API server takes 10,000 levels where a kind's schema lets anything in: a HelmRelease's values, the metadata of a
VM's template. A decoder counts levels against the interpreter's limit, which is a tenth of that.
"""

import sys
from collections.abc import Callable
from typing import Final, TypeVar

LEVELS_MAX: Final = 12_000
"""Above what an API server takes, envelopes included, and far below what a thread's stack of 8 MiB bears."""

T = TypeVar("T")


def deeply(read: Callable[[], T]) -> T:
    """Return what `read` returns, once more under a higher limit where it met the interpreter's.

    It must not give way to others: the limit is everybody's. Raises what `read` raises, `RecursionError` beyond the
    higher limit.
    """
    try:
        return read()
    except RecursionError:
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(max(usual, LEVELS_MAX))
        try:
            return read()
        finally:
            sys.setrecursionlimit(usual)
