"""What every log line says that is written while one review is answered: which request, of whom, about which VM.

Bound to the task that answers it, so that lines from anywhere below carry it too.
"""

from structlog.contextvars import bind_contextvars, clear_contextvars

from schemas.events import PodRequest, VmiRequest


def begin(webhook: str) -> None:
    """Begin a review: nothing of the one before it, on the same connection, stays."""
    clear_contextvars()
    bind_contextvars(webhook=webhook)


def asked(request: VmiRequest | PodRequest) -> None:
    """Say what is asked, and for whom."""
    if isinstance(request, PodRequest):
        vmi = request.vmi
        bind_contextvars(request=request.request, namespace=request.namespace, vm=vmi.name, vmi_uid=vmi.uid)
    else:
        bind_contextvars(request=request.request, namespace=request.namespace, vm=request.name)


def stored(sequence: int) -> None:
    """Say where the request stands in EVENTS."""
    bind_contextvars(events_seq=sequence)
