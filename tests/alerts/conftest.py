"""Prometheus' engine is there before a test that asks it begins: building it takes longer than a test may."""

from pathlib import Path

import pytest

from tests.alerts import engine


@pytest.fixture(scope="session", autouse=True)
def prometheus() -> Path:
    """Build the engine, unless it was built before."""
    return engine.built()
