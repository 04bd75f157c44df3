"""An operator's commands: what each one does, and the sentence that answers it."""

from binder.book import Book
from binder.evolve_holdings import look_again as look_at_holdings
from binder.evolve_skips import look_again
from schemas import decisions as d
from schemas.events import Command
from schemas.reasons import Order

STILL_PAUSED = "; the settings ConfigMap still pauses it"
DISABLED = "; the settings ConfigMap still has it disabled"
NOBODY = "an operator"


def answer(book: Book, command: Command) -> d.Commanded:
    """Decide a command that concerns no booking."""
    done, said = _answered(book, command)
    return commanded(command, done=done, said=said)


def commanded(command: Command, *, done: bool, said: str) -> d.Commanded:
    """Return the decision that answers a command."""
    return d.Commanded(command.order, command.who, done, said, command.namespace, command.name, command.node)


def _answered(book: Book, command: Command) -> tuple[bool, str]:
    paused = book.state.paused
    match command.order:
        case Order.PAUSE if paused:
            return False, f"placing is paused already, by {paused}"
        case Order.PAUSE:
            return True, "placing is paused: VMs are admitted and wait behind their gate, what runs goes on"
        case Order.RESUME if not paused:
            return False, f"placing is not paused by a command{_beside(book)}"
        case Order.RESUME:
            return True, f"placing goes on{_beside(book)}"
        case Order.UNSKIP:
            key = f"{command.namespace}/{command.name}"
            nodes = [node for node in book.skips.of(key) if command.node in {"", node}]
            if not nodes:
                return False, f"VM {key} skips {f'no node {command.node}' if command.node else 'no node'} now"
            return True, f"VM {key} may be placed on {', '.join(nodes)} again"
        case Order.MOVE | Order.RELEASE:
            return False, f"nothing to {command.order} is named: name a held claim or a VM"


def _beside(book: Book) -> str:
    if not book.settings.enabled:
        return DISABLED
    return STILL_PAUSED if book.settings.paused else ""


def carry_out(book: Book, decision: d.Commanded) -> None:
    """Fold a command that was carried out; one that was not changes nothing."""
    if not decision.done:
        return
    match decision.order:
        case Order.PAUSE | Order.RESUME:
            book.state.paused = (decision.who or NOBODY) if decision.order is Order.PAUSE else ""
            for uid, gpu_set in book.state.sets.items():
                if not gpu_set.node:
                    book.mark(uid)
            book.troubles.look_everywhere()
            look_at_holdings(book)
        case Order.UNSKIP:
            key = f"{decision.namespace}/{decision.name}"
            for node in book.skips.of(key):
                if decision.node in {"", node}:
                    book.skips.put(key, node, None)
            look_again(book, key)
        case Order.MOVE | Order.RELEASE:
            # The decision that comes with the answer carries it out.
            pass
