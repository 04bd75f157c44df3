"""The README map is true: drawn from the modules' first docstring lines; `REDRAW=1` redraws it."""

import os

import pytest

from tests.house.drawing import README, readme_with_map


def test_the_map_shows_the_house_as_it_stands() -> None:
    """The map in README.md equals the one drawn now."""
    text = README.read_text("utf-8")
    fresh = readme_with_map(text)
    if os.environ.get("REDRAW") == "1":
        README.write_text(fresh, "utf-8")
        text = fresh

    assert text == fresh, "README.md: the map is stale; run `make generate`"


def test_a_stale_map_is_seen() -> None:
    """A map that lacks a module differs from the one drawn now, and a README without its frame is refused."""
    text = README.read_text("utf-8")
    stale = text.replace("(schemas)", "(elsewhere)")

    assert readme_with_map(stale) != stale
    with pytest.raises(ValueError, match="put the two comment lines"):
        readme_with_map("no map here")
