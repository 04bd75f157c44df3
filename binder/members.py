"""Indexes from one key to many members, without empty leftovers, so that equal ones compare equal."""

from collections.abc import Iterable


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
