"""Chance as a function of the seed, drawn by name: leaving out one act leaves the luck of others as it was."""

import hashlib

_WHOLE = 1 << 64


class Chance:
    """Draws numbers by name. The n-th draw under a name is the same in each world of the seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: dict[str, int] = {}

    def draw(self, name: str) -> float:
        """Return a number from 0 up to and without 1."""
        count = self._drawn.get(name, 0)
        self._drawn[name] = count + 1
        told = f"{self._seed}/{name}/{count}".encode()
        return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "big") / _WHOLE

    def token(self, name: str, size: int) -> str:
        """Return so many bytes as hex: what a process would name itself with."""
        count = self._drawn.get(name, 0)
        self._drawn[name] = count + 1
        return hashlib.blake2b(f"{self._seed}/{name}/{count}".encode(), digest_size=size).hexdigest()
