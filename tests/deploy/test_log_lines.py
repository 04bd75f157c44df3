"""Log lines as machines read them: each is listed with its keys, says which input it is about, and holds no secret."""

import asyncio
import json
import os
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from deploy.child import Child
from deploy.watching.lines import ABOUT, ALWAYS, ROOMS, Line, lines, lines_of
from tests.alerts.staged_process import PORT_FILE, TOKEN
from tests.deploy.waiting import until

Told = list[dict[str, Any]]
KNOWN = lines()
ROLES_OF_INPUTS = {"decided", "admission.answered", "an input was stored"}
SECRETS = (TOKEN, b64encode(TOKEN.encode()).decode(), "an-environment-s-secret")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What a process of all roles writes at `debug` from its start until example VMs are served and it is ended."""
    directory = tmp_path_factory.mktemp("told")
    environment = {**os.environ, "GPUBINDER_OF_NOBODY": SECRETS[-1]}
    words = [sys.executable, "-m", "tests.alerts.staged_process", str(directory)]
    child = Child("staged", words, directory / "log", environment)
    child.spawn()

    async def settled() -> bool:
        assert child.running, child.failure("ended")
        return (directory / PORT_FILE).exists()

    try:
        asyncio.run(until(settled, seconds=180))
    finally:
        child.kill()
    # The last line may be cut off by the kill.
    return [json.loads(line) for line in (directory / "log").read_text().splitlines()[:-1]]


def listed(line: dict[str, Any]) -> list[Line]:
    """Return the listed lines that this one can be."""
    where = f"{line['logger'].replace('.', '/')}.py"
    known = [one for one in KNOWN if (one.where, one.event, one.level) == (where, line["event"], line["level"])]
    return [one for one in known if set(line) <= {*one.keys, *ALWAYS, *ABOUT, "exception"}]


def test_each_line_is_listed_with_its_keys(told: Told) -> None:
    """No line has a word or key that the page does not name, and each has what every line has."""
    assert len(told) > 50
    for line in told:
        assert set(ALWAYS) <= set(line), line
        if line["logger"].partition(".")[0] in ROOMS:
            assert listed(line), line
        else:
            assert set(line) <= {*ALWAYS, "exception"}, line


def test_lines_about_an_input_say_which(told: Told) -> None:
    """Each line about an input has its place in EVENTS, a decision's also the frame's and the VM's names."""
    about = [line for line in told if line["event"] in ROLES_OF_INPUTS or line["event"].startswith("write.")]

    assert {line["event"] for line in about} >= ROLES_OF_INPUTS
    for line in about:
        if line["event"] != "admission.answered":
            assert line["events_seq"] > 0, line
    for line in (one for one in told if one["event"] == "decided"):
        assert line["decisions_seq"] > 1
        if line["decision"] in {"set-opened", "set-placed", "set-waits", "pod-admitted", "vmi-admitted"}:
            assert line["namespace"].startswith("tenant-"), line
            assert line["vm"], line


def test_one_vm_s_story_is_told_by_its_names(told: Told) -> None:
    """Namespace and VM select what was asked, answered and decided of it, over the roles, in its order."""
    story = [line for line in told if (line.get("namespace"), line.get("vm")) == ("tenant-umbra", "archive")]

    words = [line.get("decision") or line["event"] for line in story]
    for earlier, later in (
        ("vmi-admitted", "pod-admitted"),
        ("pod-admitted", "set-opened"),
        ("set-opened", "set-waits"),
    ):
        assert words.index(earlier) < words.index(later)
    assert words.count("admission.answered") == 2
    assert {line["webhook"] for line in story if line["event"] == "admission.answered"} == {"vmis", "pods"}


def test_no_secret_is_told(told: Told) -> None:
    """T16: neither a licence's token, plain or encoded, nor the environment's secrets stand on any line."""
    everything = json.dumps(told)

    assert "licence-copied" in everything
    for secret in SECRETS:
        assert secret not in everything


def test_the_sources_are_read() -> None:
    """The list is not empty, knows each room that logs, and no line of it has been left without words."""
    assert {line.where.partition("/")[0] for line in KNOWN} == {"binder", "ingest", "projector", "webhooks", "deploy"}
    assert all(line.event.strip() for line in KNOWN)


def test_a_line_whose_level_is_chosen_elsewhere_is_complained_of(tmp_path: Path) -> None:
    """Whatever is logged stands on the page: a method of a logger that is handed about would hide its line."""
    file = tmp_path / "hidden.py"
    file.write_text('say = log.error if lasting else log.warning\nsay("the API server refused")\n')

    with pytest.raises(ValueError, match=r"hidden\.py:1: call error where it stands"):
        list(lines_of(file, "ingest/hidden.py"))
