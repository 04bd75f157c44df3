"""Kubernetes quantities, exactly: read into thousandths, written back in the form users write.

Integers only: 0.5 GiB is no float here, and extended resources are counted, not rounded.
"""

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?\d*\.?\d*)(?:([eE][+-]?\d+)|([numkMGTPE]i?|Ki)?)$")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
MI = 2**20


def amount(text: str | int) -> Fraction:
    """Return the value of a quantity. Raises `ValueError` for what is none."""
    match = _FORM.match(str(text).strip())
    if match is None or not any(character.isdigit() for character in match[1]):
        raise ValueError(f"quantity {text!r} has neither a number nor a known suffix")
    value = Fraction(match[1])
    if match[2]:
        return value * Fraction(10) ** int(match[2][1:])
    return value * _SUFFIXES[match[3] or ""]


def millis(text: str | int) -> int:
    """Return the quantity in thousandths, rounded up as Kubernetes rounds."""
    return _up(amount(text) * 1000)


def whole(text: str | int) -> int:
    """Return the quantity in whole units (bytes, devices), rounded up as Kubernetes rounds."""
    return _up(amount(text))


def _up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def cpu_text(thousandths: int) -> str:
    """Write an amount of cpu: `400m`, or `2`."""
    return f"{thousandths // 1000}" if thousandths % 1000 == 0 else f"{thousandths}m"


def memory_text(size: int) -> str:
    """Write bytes in the largest binary unit up to Gi that keeps them whole."""
    for suffix, unit in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)
