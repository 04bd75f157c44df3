"""Kubernetes quantities as exact integers: "1.5Gi", "250m", "2e3", rounded up and never through a float.

The grammar, the rounding (away from zero) and the ceiling (2^63 - 1) are those of
k8s.io/apimachinery `resource.Quantity`: what the API server accepts is read to the same number.
"""

import re
from functools import lru_cache
from typing import Final

CPU: Final = "cpu"
CPU_SCALE: Final = 1000
AMOUNT_MAX: Final = 2**63 - 1

_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?[0-9]+))"
)
_TEXT_MAX: Final = 128
# Beyond these powers of ten every other number is above the ceiling, or a fraction of one that rounds up.
_POWER_MAX: Final = 40
_POWER_MIN: Final = -_TEXT_MAX - 40


class MalformedQuantity(ValueError):
    """The text is no quantity; the message quotes it."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:_TEXT_MAX]!r} is no quantity; write a number with a suffix such as m, k, Mi or Gi")


def parse_quantity(text: str, scale: int = 1) -> int:
    """Return the quantity times `scale`, rounded away from zero to an integer, at most 2^63 - 1 in magnitude.

    Raises `MalformedQuantity`.
    """
    match = _GRAMMAR.fullmatch(text) if len(text) <= _TEXT_MAX else None
    if match is None or not (match["whole"] or match["part"]):
        raise MalformedQuantity(text)
    part = match["part"] or ""
    digits = int(match["whole"] + part)
    power = -len(part)
    if match["exponent"] is not None:
        # Cut so that no text, however short, makes a number of a million digits.
        power += max(_POWER_MIN, min(_POWER_MAX + _TEXT_MAX, int(match["exponent"])))
    elif match["suffix"] in _BINARY:
        digits <<= _BINARY[match["suffix"]]
    else:
        power += _DECIMAL[match["suffix"]]
    shift: int = 10 ** abs(power)  # the checker can't tell that an int to this power is one
    amount = digits * scale * shift if power >= 0 else -(-digits * scale // shift)
    amount = min(amount, AMOUNT_MAX)
    return -amount if match["sign"] == "-" else amount


@lru_cache(maxsize=4096)  # the pods of a cluster ask for the same few amounts
def amount_of(resource: str, text: str) -> int:
    """Return a resource's amount in the unit views use: cpu in thousandths, all others in bytes or units.

    Raises `MalformedQuantity`.
    """
    return parse_quantity(text, CPU_SCALE if resource == CPU else 1)
