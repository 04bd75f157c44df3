"""Quantities are read as Kubernetes reads them: every suffix, exactly, rounded up, and never beyond 63 bits."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.quantity import AMOUNT_MAX, MalformedQuantity, amount_of, parse_quantity

FACTORS = {
    **{suffix: Fraction(1, 1000**power) for power, suffix in enumerate(["", "m", "u", "n"])},
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(["k", "M", "G", "T", "P", "E"], 1)},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1)},
    **{f"{mark}{power}": Fraction(10) ** power for mark in "eE" for power in range(-20, 21)},
    **{f"e+{power}": Fraction(10) ** power for power in range(21)},
}
DIGITS = st.text("0123456789", max_size=18)
NUMBERS = st.tuples(DIGITS, st.sampled_from(["", "."]), DIGITS).map(
    lambda parts: "".join(parts) if parts[1] else parts[0]
)


@given(st.sampled_from(sorted(FACTORS)), NUMBERS.filter(lambda text: text not in {"", "."}), st.sampled_from([1, 1000]))
def test_every_suffix_is_exact_and_rounded_up(suffix: str, number: str, scale: int) -> None:
    """Number times suffix times scale, as a fraction, rounded up and cut at 2^63 - 1, is what is read."""
    exact = Fraction(number.rstrip(".")) if number[0] != "." else Fraction(f"0{number}")

    assert parse_quantity(number + suffix, scale) == min(ceil(exact * FACTORS[suffix] * scale), AMOUNT_MAX)


@given(st.sampled_from(sorted(FACTORS)), NUMBERS.filter(lambda text: text not in {"", "."}))
def test_a_sign_mirrors(suffix: str, number: str) -> None:
    """A plus changes nothing; a minus turns the amount round, which is rounding away from zero."""
    amount = parse_quantity(number + suffix)

    assert parse_quantity(f"+{number}{suffix}") == amount
    assert parse_quantity(f"-{number}{suffix}") == -amount


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "250m", 250),
        ("cpu", "64", 64_000),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "9528Mi", 9528 * 2**20),
        ("memory", "1.5Gi", 3 * 2**29),
        ("memory", "128974848", 128_974_848),
        ("memory", "129e6", 129_000_000),
        ("memory", "129M", 129_000_000),
        ("memory", "100m", 1),
        ("ephemeral-storage", "50M", 50_000_000),
        ("nvidia.com/AD102GL_L40S", "8", 8),
        ("devices.kubevirt.io/kvm", "1k", 1000),
        ("memory", "1Ei", 2**60),
        ("memory", "8Ei", AMOUNT_MAX),
        ("memory", "1e999999999", AMOUNT_MAX),
        ("memory", "1e-999999999", 1),
        ("memory", "0e999999999", 0),
    ],
)
def test_amounts_come_in_the_units_of_views(resource: str, text: str, amount: int) -> None:
    """Cpu is read in thousandths, everything else in bytes or units."""
    assert amount_of(resource, text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "-",
        "Gi",
        "1 Gi",
        "1gi",
        "1GiB",
        "1K",
        "1mi",
        "0x10",
        "1e",
        "1e1.5",
        "1Ki3",
        "--1",
        "1,5",
        "\u0661",
        "NaN",
        "1\n",
    ],
)
def test_what_is_no_quantity_is_named(text: str) -> None:
    """The error quotes the text and says what to write."""
    with pytest.raises(MalformedQuantity) as caught:
        parse_quantity(text)

    assert repr(text) in str(caught.value)
    assert "write a number" in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_an_amount_or_an_error(text: str) -> None:
    """No text makes a number of a million digits or another exception; an error means it holds no plain number."""
    try:
        assert abs(parse_quantity(text)) <= AMOUNT_MAX
    except MalformedQuantity:
        assert not (text.isascii() and text.isdigit() and len(text) <= 128)
