"""Ports of tests that run side by side: each process of the suite chooses among its own."""

import os

from deploy import child

_SHARES = 8


def keep_apart() -> None:
    """Choose ports of our own share, where the suite runs in several processes: none is taken before it is bound."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        ports, share = child.PORTS, int(worker.removeprefix("gw")) % _SHARES
        size = len(ports) // _SHARES
        child.offer(ports[share * size : (share + 1) * size])
