"""Where helm keeps what it keeps, and the mark of tests that need it."""

from pathlib import Path

import pytest

_NEED_HELM = {"helm_home"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs helm: it is built once, which takes minutes."""
    for item in items:
        if _NEED_HELM & set(getattr(item, "fixturenames", ())):
            item.add_marker("helm")


@pytest.fixture
def helm_home(tmp_path: Path) -> Path:
    """A folder for helm's caches and the values it is given."""
    home = tmp_path / "helm"
    home.mkdir()
    return home
