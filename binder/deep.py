"""JSON that nests deeper than a decoder goes: what an API server takes, no tenant's object may stop us with.

An API server takes 10,000 levels where a kind's schema lets anything in: a HelmRelease's values, the metadata of a
VM's template. A decoder gives up after a tenth of that, and with it the list or watch that the object came in.
Nothing that is read of an object stands so deep: it is read without what does.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

LEVELS_KEPT: Final = 200
"""What is read of an object, its list and its review around it, nests a tenth as deep; decoders go some 900 levels."""

LEVELS_MOST: Final = 200_000
"""An API server takes 10,000: what nests this deep comes from nobody who has to be understood."""

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""A string that nothing ends goes on to the end of the body: each byte is looked at once, whoever wrote it."""

_FLAT: Final = rb'(?:[^"\[\]{}]++|%b)*+' % _STRING
_NEST: Final = rb"[\[{]%b[\]}]"
_LOW: Final = rb'(?:[^"\[\]{}]++|%b|%b)*+' % (_STRING, _NEST % _FLAT)
_TOKENS: Final = re.compile(rb"(?:%b%b)++|%b|[\[\]{}]" % (_NEST % _LOW, _FLAT, _STRING), re.DOTALL)
"""Lists and objects of no more than two levels are passed over, all that stand in a row at once."""

T = TypeVar("T")


def deeply(read: Callable[[msgspec.Raw | bytes], T], body: msgspec.Raw | bytes) -> T:
    """Return what `read` returns of a body, or of what is not too deep in it. Raises what `read` raises."""
    try:
        return read(body)
    except RecursionError:
        return read(msgspec.Raw(shallow(bytes(body))))


def shallow(body: bytes) -> bytes:
    """Return JSON with null for what stands below so many levels; what is no JSON, or an abyss, as it is."""
    parts: list[bytes] = []
    kept_from = depth = 0
    for token in _TOKENS.finditer(body):
        if token.end() - token.start() > 1:
            continue
        match body[token.start()]:
            case 0x7B | 0x5B:  # { [
                depth += 1
                if depth > LEVELS_MOST:
                    return body
                if depth == LEVELS_KEPT + 1:
                    parts += (body[kept_from : token.start()], b"null")
            case 0x7D | 0x5D:  # } ]
                if depth == LEVELS_KEPT + 1:
                    kept_from = token.end()
                depth -= 1
            case _:
                continue
    return body if depth else b"".join([*parts, body[kept_from:]])
