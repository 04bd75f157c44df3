"""Sums of Kubernetes quantities, written as Kubernetes writes them: "600m", "3Gi", "2" (W1).

Exact to a thousandth, which is as fine as requests are; what is finer is rounded up, as the API server does.
"""

from collections.abc import Iterable

from schemas.quantity import AMOUNT_MAX, parse_quantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_MILLI = 1000


def total(quantities: Iterable[str]) -> str:
    """Return the sum in canonical form: of the sort, binary or decimal, of the first that is not zero.

    Raises `schemas.quantity.MalformedQuantity`.
    """
    thousandths, binary = 0, None
    for text in quantities:
        amount = _thousandths(text)
        thousandths += amount
        if amount and binary is None:
            binary = text.endswith("i")
    return _written(thousandths, binary=bool(binary))


def _thousandths(text: str) -> int:
    amount = parse_quantity(text, _MILLI)
    # Beyond the parser's ceiling the whole units still fit.
    return parse_quantity(text) * _MILLI if abs(amount) == AMOUNT_MAX else amount


def _written(thousandths: int, *, binary: bool) -> str:
    """Write an amount with the largest suffix that leaves no fraction; binary ones begin at 1024."""
    whole, rest = divmod(thousandths, _MILLI)
    if rest:
        return f"{thousandths}m"
    base, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
    place = 0
    while whole and not whole % base and place < len(suffixes) - 1:
        whole //= base
        place += 1
    return f"{whole}{suffixes[place]}"
