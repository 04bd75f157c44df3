"""What every test lives under: an error that is logged and not asked for fails it."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.error_logs import ErrorLogs, listening
from tests.ports import keep_apart

# What decides whether a change may land looks at the same cases on each machine; the soak looks for new ones.
# How long a case takes is the machine's affair.
_ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", _ANY_PACE, derandomize=True)
settings.register_profile("search", _ANY_PACE, print_blob=True)
settings.load_profile("steady")

pytest_plugins = ["pytester", "tests.cluster.fixtures", "tests.e2e.recovery", "tests.servers"]


def pytest_configure() -> None:
    """Say that no event loop is wanted by default.

    The plugin that lets a loop's time jump asks for one around synchronous tests too; Python before 3.14
    would make a loop that nobody closes.
    """
    asyncio.set_event_loop(None)
    keep_apart()


@pytest.fixture(autouse=True)
def error_logs() -> Iterator[ErrorLogs]:
    """Fail the test on an error-level log line, unless it said `error_logs.expect(...)` or `.allow(...)`."""
    with listening(ErrorLogs()) as logs:
        yield logs
    complaints = logs.complaints()
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)
