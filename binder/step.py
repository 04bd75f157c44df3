"""One input, folded and decided: the only loop in which decisions are made, live and in a re-run alike."""

import re

import msgspec

from binder.book import Book
from binder.decide import decide
from binder.evolve import Spent, evolve, evolve_decision, settle, spent_on
from schemas import decisions as d
from schemas.events import AnyEvent, Changes, UnknownMessage, WriteRequest, decode_event
from schemas.licences import COPIES, SOURCES
from schemas.objects import (
    BudgetView,
    ClaimView,
    ClassView,
    Gone,
    KubeVirtView,
    NamespaceView,
    NodeView,
    PodView,
    PoolView,
    PvcView,
    PvView,
    ReplicaSetView,
    SecretView,
    SettingsView,
    Stamp,
    TenantView,
    View,
    VmiView,
    VmView,
)

RULES_VERSION = 1
"""Changes when a decision would (T7); not the package's version."""

REASON_CHARS_MAX = 300

VIEWS: dict[str, type[View]] = {
    "nodes": NodeView,
    "pods": PodView,
    "persistentvolumes": PvView,
    "persistentvolumeclaims": PvcView,
    "namespaces": NamespaceView,
    "gpuclasses": ClassView,
    "gpuclaims": ClaimView,
    "kubevirts": KubeVirtView,
    "virtualmachines": VmView,
    "virtualmachineinstances": VmiView,
    "virtualmachinepools": PoolView,
    "virtualmachineinstancereplicasets": ReplicaSetView,
    "configmaps": SettingsView,
    "gpubudgets": BudgetView,
    "helmreleases": TenantView,
    SOURCES: SecretView,
    COPIES: SecretView,
}
"""The view that each watched kind comes as, by plural."""


def read_input(book: Book, sequence: int, body: bytes) -> AnyEvent | d.Rejected | None:
    """Read one EVENTS body: the event, None for a voided one, `Rejected` for a malformed one (T6).

    Raises `UnknownMessage` for a kind or version that this program does not know.
    """
    if book.state.voided and str(sequence) in book.state.voided:
        return None
    try:
        event = decode_event(body)
    except UnknownMessage as unknown:
        raise UnknownMessage(unknown.kind, unknown.version, sequence) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return d.Rejected(_without_values(str(error)))
    kind = getattr(event, "kind", None)
    if kind is not None and kind not in VIEWS:
        return d.Rejected("field kind names a kind that is not watched")
    if isinstance(event, Changes):
        expected = (VIEWS[event.kind], Gone)
        for view in event.changes:
            if not isinstance(view, expected):
                return d.Rejected("field changes holds an object that is not of the message's kind")
    if isinstance(event, WriteRequest):
        for side in (event.view, event.before):
            if side is not None and not isinstance(side, VIEWS[event.kind]):
                return d.Rejected("field view or before holds an object that is not of the message's kind")
    return event


def step(book: Book, sequence: int, stamp_ns: int, body: bytes) -> tuple[d.Decision, ...]:
    """Fold one input and decide it; returns what was decided, already folded."""
    event = read_input(book, sequence, body)
    decided: list[d.Decision] = []
    if isinstance(event, d.Rejected):
        # It changed nothing, but time went on with it.
        decided.append(event)
        event = None
    evolve(book, sequence, stamp_ns, event)
    spent = Spent()
    for decision in decide(book, event, spent):
        evolve_decision(book, Stamp(book.state.generation, sequence, len(decided)), decision)
        decided.append(decision)
    result = tuple(decided)
    settle(book, result, spent)
    return result


def apply(book: Book, sequence: int, stamp_ns: int, body: bytes, logged: tuple[d.Decision, ...]) -> None:
    """Fold one input and what the log says was decided on it: nothing is decided again."""
    event = read_input(book, sequence, body)
    evolve(book, sequence, stamp_ns, None if isinstance(event, d.Rejected) else event)
    for place, decision in enumerate(logged):
        evolve_decision(book, Stamp(book.state.generation, sequence, place), decision)
    settle(book, logged, spent_on(logged))


def _without_values(text: str) -> str:
    """Keep the parser's complaint and path: what it quotes may be a value, and is left out (T16)."""
    first = text.splitlines()[0] if text else "unreadable"
    return re.sub(r"'[^']*'", "'...'", first)[:REASON_CHARS_MAX]
