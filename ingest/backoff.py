"""How long to wait before trying again: doubling, bounded, and never in step with others."""

import random
from typing import Final

FIRST_S: Final = 0.25
LONGEST_S: Final = 30.0


class Backoff:
    """Waits after failures in a row; `failures` counts them."""

    def __init__(self, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self.failures = 0

    def next(self) -> float:
        """Count a failure and return how many seconds to wait: between half and all of the doubled step."""
        step = min(self._first_s * 2.0 ** min(self.failures, 16), self._longest_s)
        self.failures += 1
        return step * random.uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret

    def succeeded(self) -> None:
        """Begin anew."""
        self.failures = 0
