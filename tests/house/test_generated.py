"""What is drawn from the code is fresh: CRDs and the page of names (N1)."""

from pathlib import Path

import msgspec
import pytest

from deploy.generate import CRDS, ROOT, generated
from deploy.names_page import groups
from schemas import admission, names


@pytest.mark.parametrize("path", sorted(generated()), ids=lambda path: path.name)
def test_generated_files_are_fresh(path: Path) -> None:
    """Each generated file holds what the code says now; `make generate` writes it."""
    assert path.read_text("utf-8") == generated()[path], f"run `make generate`: {path.relative_to(ROOT)} is stale"


def test_nothing_else_lies_among_the_generated() -> None:
    """A CRD that the code no longer knows is deleted."""
    assert set(CRDS.iterdir()) == {path for path in generated() if path.parent == CRDS}


def test_every_name_is_published() -> None:
    """N1: each constant of schemas/names.py is in the published JSON with its value, and those of admission are."""
    published = msgspec.json.decode((ROOT / "docs" / "names.json").read_bytes())
    listed = {name: value for group in published["groups"] for name, value in group["names"].items()}
    defined = {name: value for name, value in vars(names).items() if name.isupper() and name != "DOMAIN"}
    asked = {name: value for name, value in vars(admission).items() if name in {"CONFIGURATION_NAME", "PLATFORM_VERB"}}

    assert defined.items() | asked.items() <= listed.items()
    assert all(value == vars(admission)[name] for name, value in listed.items() if name not in defined)
    assert published["domain"] == names.DOMAIN


def test_groups_of_names_have_titles() -> None:
    """A reader of the page learns what each group of names is for."""
    assert all(len(group.title.split()) >= 2 and group.names for group in groups())
