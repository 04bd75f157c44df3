"""An error-level log line fails the test that did not ask for it."""

import logging

import pytest
import structlog

from tests.error_logs import ErrorLogs, listening


def test_an_error_of_the_standard_loggers_is_a_complaint(error_logs: ErrorLogs) -> None:
    """A line logged as an error is named in the complaint; a warning is not."""
    error_logs.allow("broken pin")
    with listening(ErrorLogs()) as logs:
        logging.getLogger("somewhere").warning("only a warning")
        logging.getLogger("somewhere").error("broken %s", "pin")

    assert logs.complaints() == ["logged as an error: somewhere: broken pin"]


def test_an_error_of_structlog_is_a_complaint_however_it_is_configured(error_logs: ErrorLogs) -> None:
    """The program's own configuration of structlog doesn't silence the complaint."""
    error_logs.allow("never silent")
    with listening(ErrorLogs()) as logs:
        structlog.configure(processors=[structlog.processors.JSONRenderer()], cache_logger_on_first_use=True)
        structlog.get_logger().error("never silent", pin=1)

    assert len(logs.complaints()) == 1
    assert "never silent" in logs.complaints()[0]


def test_an_expected_error_is_none_and_its_absence_is_one() -> None:
    """`expect` takes the line off the list, and complains when it never comes; `allow` never complains."""
    logs = ErrorLogs()
    logs.expect("broken")
    logs.allow("maybe")
    assert logs.complaints() == ["no error was logged that matches 'broken'"]

    logs.lines.append("somewhere: broken pin")
    assert logs.complaints() == []


def test_the_complaint_fails_the_test_that_was_silent_about_it(pytester: pytest.Pytester) -> None:
    """Of two tests that log an error, the one that expects it passes and the other is an error."""
    pytester.makepyfile("""
        import logging

        def test_silent():
            logging.getLogger("somewhere").error("broken pin")

        def test_aware(error_logs):
            error_logs.expect("broken pin")
            logging.getLogger("somewhere").error("broken pin")
    """)

    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*logged as an error: somewhere: broken pin*"])
