"""Each story is told again and decides the same; `RETELL=1` rewrites what is told in it."""

import os
import re
from pathlib import Path

import pytest

from tests.stories.language import Story

HERE = Path(__file__).parent
STORIES = sorted(HERE.glob("*.story"))


def retold(text: str) -> str:
    """Return the story with what is told under each of its commands: the indented lines."""
    story, lines = Story(), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            try:
                lines += [f"  {said}" for said in story.hear(line)]
            except Exception as error:
                error.add_note(f"line {number}: {line}")
                raise
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    """What the story's indented lines say is what is decided; its first line names the rules it stands for."""
    text = path.read_text("utf-8")
    again = retold(text)
    if os.environ.get("RETELL"):
        path.write_text(again, "utf-8")
    else:
        assert again == text


def test_a_story_that_tells_something_else_is_noticed() -> None:
    """A wrong line in a story does not pass."""
    true = (
        "class a\nnode n1 a=1 cpu=8\nstart vm1 a=1\n  opens vm1: a x1 by nvidia.com/A\n  places vm1 on n1 for vm1-pod\n"
    )

    assert retold(true) == true
    assert retold(true.replace("on n1 for", "on n2 for")) == true


def test_every_story_says_which_rule_it_is_for() -> None:
    """The first line of a story is a comment that names a rule of the protocol, a clause or a case."""
    assert STORIES
    for path in STORIES:
        first = path.read_text("utf-8").splitlines()[0]
        assert re.match(r"# [A-Z]\d+[,:]", first), path.name
