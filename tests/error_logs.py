"""What was logged as an error while a test ran: a test that did not ask for it fails.

An error line is a promise that somebody must look; in a test nobody does, so it counts as a failure.
Caught are the standard library's loggers (asyncio's "exception was never retrieved" among them) and
structlog, however the program under test configures it.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import structlog
from structlog.typing import EventDict, WrappedLogger
from typing_extensions import override

LOUD = frozenset({"error", "critical", "exception"})


class ErrorLogs(logging.Handler):
    """Collects error lines; `expect` and `allow` say which ones a test wants."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        self._allowed: list[re.Pattern[str]] = []

    def expect(self, pattern: str) -> None:
        """Demand that a line matching the regular expression `pattern` is logged, once or more."""
        self._expected.append(re.compile(pattern))

    def allow(self, pattern: str) -> None:
        """Tolerate lines matching the regular expression `pattern`: a fault whose report depends on timing."""
        self._allowed.append(re.compile(pattern))

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Note a line of the standard library's loggers."""
        self.lines.append(f"{record.name}: {logging.Formatter().format(record)}")

    def process(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Note a line of structlog and pass it on: the first of its processors."""
        if method in LOUD:
            self.lines.append(f"structlog: {event.get('event')} {event}")
        return event

    def complaints(self) -> list[str]:
        """Name each line that nobody asked for and each asked line that never came."""
        wanted = [*self._expected, *self._allowed]
        unasked = [line for line in self.lines if not any(pattern.search(line) for pattern in wanted)]
        missing = [p.pattern for p in self._expected if not any(p.search(line) for line in self.lines)]
        return [f"logged as an error: {line}" for line in unasked] + [
            f"no error was logged that matches {pattern!r}" for pattern in missing
        ]


@contextmanager
def listening(logs: ErrorLogs) -> Iterator[ErrorLogs]:
    """Let `logs` hear both loggers; structlog keeps hearing it when the program configures itself."""
    root, before, configure = logging.getLogger(), structlog.get_config(), structlog.configure

    def configure_and_listen(processors: Any = None, **rest: Any) -> None:  # noqa: ANN401 - structlog's own signature
        chosen = before["processors"] if processors is None else processors
        # Cached loggers would go on speaking to the test that made them.
        configure(processors=[logs.process, *chosen], **{**rest, "cache_logger_on_first_use": False})

    root.addHandler(logs)
    configure_and_listen()
    structlog.configure = cast("Any", configure_and_listen)
    try:
        yield logs
    finally:
        structlog.configure = configure
        configure(**before)
        root.removeHandler(logs)
