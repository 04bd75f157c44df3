"""What every log line says that is written while one review is answered: which request, of whom, about which VM.

Bound to the task that answers it, so that lines from anywhere below carry it too.
"""

from structlog.contextvars import bind_contextvars, clear_contextvars

from schemas.decided import VmiId
from schemas.events import OrderRequest, PodRequest, StartRequest, VmiRequest, WriteRequest


def begin(webhook: str) -> None:
    """Begin a review: nothing of the one before it, on the same connection, stays."""
    clear_contextvars()
    bind_contextvars(webhook=webhook)


def asked(request: VmiRequest | PodRequest | StartRequest | WriteRequest | OrderRequest) -> None:
    """Say what is asked, and for whom."""
    match request:
        case PodRequest() | StartRequest():
            _about(request.request, request.vmi)
        case VmiRequest():
            bind_contextvars(request=request.request, namespace=request.namespace, vm=request.name)
        case WriteRequest():
            bind_contextvars(request=request.request, namespace=request.namespace, kind=request.kind, name=request.name)
        case OrderRequest():
            bind_contextvars(request=request.request, namespace=request.namespace, name=request.name)


def _about(request: str, vmi: VmiId) -> None:
    bind_contextvars(request=request, namespace=vmi.namespace, vm=vmi.name, vmi_uid=vmi.uid)


def stored(sequence: int) -> None:
    """Say where the request stands in EVENTS."""
    bind_contextvars(events_seq=sequence)
