"""What every test lives under: an error that is logged and not asked for fails it."""

from collections.abc import Iterator

import pytest

from tests.error_logs import ErrorLogs, listening

pytest_plugins = ["pytester", "tests.servers"]


@pytest.fixture(autouse=True)
def error_logs() -> Iterator[ErrorLogs]:
    """Fail the test on an error-level log line, unless it said `error_logs.expect(...)` or `.allow(...)`."""
    with listening(ErrorLogs()) as logs:
        yield logs
    complaints = logs.complaints()
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)
