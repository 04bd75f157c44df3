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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give a test on real servers a second go where the run was given some (`--max-suite-reruns`).

    Such a test shares two cores with the servers that it starts, and a leader election at the wrong
    moment is the machine's affair. It is named with its trace at the end, to be mended. Pure logic has
    one go, and without the option so has every test.
    """
    if not config.getoption("max_suite_reruns"):
        return
    for item in items:
        if any(item.get_closest_marker(name) for name in ("nats", "cluster", "helm", "promql")):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(autouse=True)
def error_logs() -> Iterator[ErrorLogs]:
    """Fail the test on an error-level log line, unless it said `error_logs.expect(...)` or `.allow(...)`."""
    with listening(ErrorLogs()) as logs:
        yield logs
    complaints = logs.complaints()
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)
