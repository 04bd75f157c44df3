"""Sizes of stores, read as nats-server reads them in its configuration."""

import pytest
import typer

from deploy.commands.options import size
from schemas.streams import DECISIONS, EVENTS, shares


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("900", 900),
        ("2K", 2000),
        ("2KB", 2048),
        ("18GB", 18 * 1024**3),
        ("20g", 20 * 10**9),
        ("1TiB", 1024**4),
        ("3Mi", 3 * 1024**2),
    ],
)
def test_a_size_is_read_as_the_server_reads_it(text: str, bytes_: int) -> None:
    """K is 1000 and KB is 1024: a share of what the server itself may fill."""
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "GB", "1.5GB", "18 apples", "-1GB", "18B"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """Whoever mistypes it is told how to say it."""
    with pytest.raises(typer.BadParameter, match="18GB"):
        size(text)


def test_the_logs_leave_room_in_the_store() -> None:
    """T8: both logs full leave a tenth of the store for snapshots."""
    found = shares(1000)

    assert found[EVENTS] > found[DECISIONS]
    assert sum(found.values()) <= 900
