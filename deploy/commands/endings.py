"""How a command ends: its exit code, and one sentence to the person at the terminal instead of a traceback."""

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any, Final

import structlog
import typer
from rich.markup import escape

from deploy.commands.terminal import err, say

OK: Final = 0
FAILED: Final = 1
"""The work could not be done: not reachable, not found, refused."""
USAGE: Final = 2
BROKEN: Final = 3
"""The log is broken, shortened, unreadable, or not the one that belongs here."""
DIFFERENT: Final = 4
"""The rules decide otherwise than the log says."""
INTERRUPTED: Final = 130

CODES = """[bold]Exit codes[/]  0 done · 1 could not be done · 2 wrong usage"""
LOG_CODES = f"{CODES} · 3 the log is broken or not ours"
PROOF_CODES = f"{LOG_CODES} · 4 decided differently"


class Failed(Exception):
    """A command can't do its work; the message is for the person at the terminal. `code`: the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def carry_out(work: Coroutine[Any, Any, int | None]) -> None:
    """Run a command to its end: its code is the exit code, what it can't do is said in a sentence."""
    if not structlog.is_configured():
        _quiet_logs()
    try:
        code = asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        told = sentence(error)
        if told is None:
            raise
        say(err(), f"[bold red]gpubinder:[/] {escape(told[0])}")
        raise typer.Exit(told[1]) from None
    if code:
        raise typer.Exit(code)


def sentence(error: BaseException) -> tuple[str, int] | None:
    """Return what to tell about an error and the exit code; None for a bug, which shows its traceback."""
    if isinstance(error, BaseExceptionGroup):
        told = [found for one in error.exceptions if (found := sentence(one)) is not None]
        return max(told, key=lambda one: one[1]) if len(told) == len(error.exceptions) else None
    if isinstance(error, Failed):
        return str(error), error.code
    # Imported where something went wrong, so that commands that need none of it start quickly.
    from binder.access import Unusable
    from binder.anchor import NotOurs
    from binder.commanding import NotAnswered
    from binder.journal import Denied, Gap, Unavailable, Unclear
    from binder.kube import ApiError
    from binder.kube_login import LoginError
    from binder.logbook import DataLoss
    from binder.slices import NotASlice
    from binder.stream_setup import StreamsDiffer
    from binder.tip import BrokenLog
    from binder.voiding import NotVoidable
    from deploy.adopt import NotFresh
    from deploy.child import ChildFailed
    from deploy.front_desk import PortTaken
    from deploy.leaving import NotStopped, StillUsed
    from deploy.local import NatsServerMissing
    from deploy.world.dump import BadManifest
    from schemas.events import UnknownMessage
    from webhooks.answers import UnreadableLog
    from webhooks.tls import UnusableCertificate

    if isinstance(error, BrokenLog | DataLoss | Gap | NotOurs | NotASlice | UnknownMessage | UnreadableLog):
        return str(error), BROKEN
    if isinstance(error, ApiError):
        return f"the API server said {error}", FAILED
    known = (
        *(Unavailable, Unclear, Denied, Unusable, LoginError),
        *(StreamsDiffer, NotFresh, NotVoidable, NotAnswered, BadManifest, StillUsed, NotStopped),
    )
    machine = (PortTaken, UnusableCertificate, ChildFailed, NatsServerMissing, OSError, LookupError)
    if isinstance(error, (*known, *machine)) and not isinstance(error, KeyError | IndexError):
        return str(error), FAILED
    return None


def _quiet_logs() -> None:
    """Keep what a short command's parts log off its output: warnings go to stderr, libraries' to nobody."""
    logging.getLogger().addHandler(logging.NullHandler())
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
