"""How much memory a book takes: reads a snapshot from standard input, prints by how many megabytes it grew."""

import gc
import resource
import sys
from pathlib import Path

from binder.book import Book
from binder.snapshot import decode_state


def resident() -> float:
    """Return the megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


if __name__ == "__main__":
    body = sys.stdin.buffer.read()
    before = resident()
    book = Book(decode_state(body))
    gc.collect()
    print(f"{resident() - before:.1f}" if book.state.sets else "0")
