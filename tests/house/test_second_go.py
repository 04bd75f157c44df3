"""The second go that a run may give to tests on real servers: who has it, and who learns of it."""

import pytest

_STORY = """
    import pytest

    goes = []

    def unsteady(name):
        goes.append(name)
        assert goes.count(name) > 1, f"first go of {name}"

    @pytest.mark.nats
    def test_on_a_server():
        unsteady("server")

    @pytest.mark.nats
    def test_that_never_passes():
        assert not "broken for good"

    def test_of_logic():
        unsteady("logic")
"""
_MARKS = "[pytest]\nmarkers = nats: starts a real nats-server\n"


def test_a_test_on_servers_has_a_second_go_and_logic_none(pytester: pytest.Pytester) -> None:
    """It passes at the second go, and its first one's trace is printed; what is broken stays red."""
    pytester.makepyfile(_STORY)
    pytester.makeini(_MARKS)

    result = pytester.runpytest_subprocess(
        "-p", "tests.conftest", "-p", "no:cacheprovider", "--max-suite-reruns=5", "--rerun-show-tracebacks"
    )

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["RERUN *test_on_a_server", "*first go of server*"])


def test_without_being_given_some_every_test_has_one_go(pytester: pytest.Pytester) -> None:
    """Whoever runs a test by hand sees its first failure."""
    pytester.makepyfile(_STORY)
    pytester.makeini(_MARKS)

    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider")

    result.assert_outcomes(failed=3)


def test_a_run_that_is_unsteady_all_over_is_red(pytester: pytest.Pytester) -> None:
    """When the goes given to a run are used up, failures count."""
    pytester.makepyfile(
        "".join(
            f"""
import pytest

goes_{number} = []

@pytest.mark.nats
def test_{number}():
    goes_{number}.append(1)
    assert len(goes_{number}) > 1
"""
            for number in range(4)
        )
    )
    pytester.makeini(_MARKS)

    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider", "--max-suite-reruns=2")

    result.assert_outcomes(passed=2, failed=2)
