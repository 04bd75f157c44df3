"""How long it took until VMs started again: measured beside a test, shown at the end of the run, deciding nothing."""

import time
from collections.abc import Callable

import pytest

_TOOK = pytest.StashKey[list[tuple[str, float]]]()
Took = Callable[[str, float], None]
"""Notes what happened, and since when, by `time.monotonic`."""


@pytest.fixture
def took(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Took:
    """Note how many seconds have passed since something; also a property in the JUnit report."""
    noted = request.config.stash.setdefault(_TOOK, [])

    def note(what: str, since: float) -> None:
        seconds = round(time.monotonic() - since, 2)
        noted.append((what, seconds))
        record_property(what, seconds)

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what was noted."""
    noted = config.stash.get(_TOOK, [])
    if noted:
        terminalreporter.section("time to recover")
        for what, seconds in noted:
            terminalreporter.write_line(f"{seconds:7.2f} s  {what}")
