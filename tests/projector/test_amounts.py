"""Sums of quantities: exact, and in the form the API server prints (W1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projector.amounts import total
from schemas.quantity import MalformedQuantity, parse_quantity

SUFFIXES = ("m", "", "k", "M", "G", "Ki", "Mi", "Gi", "Ti")


@pytest.mark.parametrize(
    ("quantities", "written"),
    [
        ([], "0"),
        (["100m", "0.5"], "600m"),
        (["500m", "1500m"], "2"),
        (["512Mi", "1.5Gi"], "2Gi"),
        (["1Gi", "1"], "1073741825"),
        (["0", "64Mi"], "64Mi"),
        (["1000", "24000"], "25k"),
        (["1e3"], "1k"),
        (["1n"], "1m"),
        (["7Ei"], "7Ei"),
        (["1023Ki", "1Ki"], "1Mi"),
    ],
)
def test_sums_are_written_as_kubernetes_writes_them(quantities: list[str], written: str) -> None:
    """The largest suffix that leaves no fraction, binary where the first amount is."""
    assert total(quantities) == written


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(SUFFIXES)), max_size=6))
def test_a_sum_is_worth_what_its_parts_are(parts: list[tuple[int, str]]) -> None:
    """Nothing is lost or won in thousandths, whatever the suffixes, and what was read back stays as it is.

    A binary sum that takes no suffix is read back as a decimal one, as the API server reads it.
    """
    quantities = [f"{amount}{suffix}" for amount, suffix in parts]

    written = total(quantities)

    assert parse_quantity(written, 1000) == sum(parse_quantity(text, 1000) for text in quantities)
    again = total([written])
    assert parse_quantity(again, 1000) == parse_quantity(written, 1000)
    assert total([again]) == again
    assert again == written or written.isdecimal()


def test_what_is_no_quantity_is_refused() -> None:
    """A text that is no amount is not taken for none."""
    with pytest.raises(MalformedQuantity):
        total(["1", "much"])
