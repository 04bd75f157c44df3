"""Log lines on stderr: coloured for people, JSON for machines; the libraries' own lines in the same form."""

import logging
import sys
from enum import StrEnum

import structlog
from structlog.typing import Processor


class Form(StrEnum):
    """How log lines look; `auto` is console on a terminal, else json."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class Level(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure(form: Form, level: Level) -> None:
    """Have structlog and the standard library write one form of line from this level on."""
    json = form is Form.JSON or (form is Form.AUTO and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: Processor = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer()
    tracebacks: list[Processor] = [structlog.processors.format_exc_info] if json else []
    structlog.configure(
        # First, so that a line that nobody wants costs next to nothing.
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tracebacks, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
