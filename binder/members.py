"""Indexes from one key to many members, without empty leftovers, so that equal ones compare equal."""

from bisect import bisect_left, insort
from collections.abc import Iterable

Elder = tuple[int, str, str]
"""One of several of which the oldest counts: since when it is there, its uid, its name."""


class Members:
    """Members by key, each once, in the order they came; whoever decides by them sorts."""

    def __init__(self) -> None:
        self._members: dict[str, dict[str, bool]] = {}

    def of(self, key: str) -> Iterable[str]:
        """Return the members of a key."""
        return self._members.get(key, ())

    def count(self, key: str) -> int:
        """Return how many members a key has."""
        return len(self._members.get(key, ()))

    def add(self, key: str, member: str) -> None:
        """Let a key have a member."""
        self._members.setdefault(key, {})[member] = True

    def drop(self, key: str, member: str) -> None:
        """Let a key have a member no more."""
        members = self._members.get(key)
        if members is not None:
            members.pop(member, None)
            if not members:
                del self._members[key]

    def table(self) -> dict[str, dict[str, bool]]:
        """Return all of it, to be compared."""
        return self._members


class Elders:
    """Members by key, the oldest first: who asks for that one pays for no others."""

    def __init__(self) -> None:
        self._elders: dict[str, list[Elder]] = {}

    def first(self, key: str) -> Elder | None:
        """Return the oldest member of a key, None where there is none."""
        elders = self._elders.get(key)
        return elders[0] if elders else None

    def add(self, key: str, elder: Elder) -> None:
        """Let a key have a member."""
        insort(self._elders.setdefault(key, []), elder)

    def drop(self, key: str, elder: Elder) -> None:
        """Let a key have a member no more."""
        elders = self._elders.get(key, [])
        place = bisect_left(elders, elder)
        if elders[place : place + 1] == [elder]:
            del elders[place]
            if not elders:
                del self._elders[key]

    def table(self) -> dict[str, list[Elder]]:
        """Return all of it, to be compared."""
        return self._elders
