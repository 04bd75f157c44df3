"""What is told of the chart is so: the values of the install page are there, the version is the program's."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

from deploy.chart_files import CHART
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "operating" / "install.md").read_text("utf-8")
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))


def known(path: str) -> bool:
    """Say whether a value is there by its path."""
    here: Any = VALUES
    for part in path.split("."):
        if not isinstance(here, dict) or part not in here:
            return False
        here = here[part]
    return True


def told() -> Iterator[str]:
    """Yield each value that the page speaks of: in its table, and behind --set."""
    table = PAGE[PAGE.index("| value | default |") :].split("\n\n")[0]
    for row in table.splitlines()[2:]:
        before = ""
        for word in re.findall(r"`([\w.*]+)`", row.split("|")[1]):
            # `.b` stands for its neighbour's parent.
            path = before.rpartition(".")[0] + word if word.startswith(".") else word
            before = path
            yield path.removesuffix(".*")
    for path in re.findall(r"--set ([\w.]+)=", PAGE):
        yield path


def test_every_value_that_the_page_tells_of_is_there() -> None:
    """Whoever follows the page sets what the chart knows."""
    paths = list(told())

    assert len(paths) > 20
    assert [path for path in paths if not known(path)] == []


def test_the_chart_has_the_version_of_the_program() -> None:
    """Chart and program are released together: the image's default tag is the program's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))

    assert (chart["version"], chart["appVersion"]) == (project, project)


def test_no_default_names_a_registry() -> None:
    """Where images come from is for whoever installs it to say."""
    assert VALUES["image"]["registry"] == ""
    assert "/" not in VALUES["image"]["repository"]
