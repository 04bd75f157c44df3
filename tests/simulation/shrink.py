"""A failing script made short: acts are left out, and waits cut, for as long as the same law breaks."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tests.simulation.acts.act import Step

Steps = Sequence[Step]
Fails = Callable[[Steps], bool]
TRIES_MAX = 200


class Shrinker:
    """Shrinks by leaving out ever smaller runs of acts; `tries` counts the worlds lived for it."""

    def __init__(self, fails: Fails, tries_max: int = TRIES_MAX) -> None:
        self._fails = fails
        self._most = tries_max
        self.tries = 0

    def shrink(self, steps: Steps) -> list[Step]:
        """Return a script that still fails, as short as was found."""
        best = list(steps)
        size = max(1, len(best) // 2)
        while self.tries < self._most:
            smaller = self._without_runs(best, size)
            if len(smaller) == len(best) and size == 1:
                break
            size = max(1, size // 2) if len(smaller) == len(best) else max(1, min(size, len(smaller) // 2))
            best = smaller
        return self._hastened(best)

    def _without_runs(self, steps: list[Step], size: int) -> list[Step]:
        """Leave out runs of so many acts, from the end on: what broke the law stands near it."""
        best, at = steps, len(steps)
        while at > 0 and self.tries < self._most:
            start = max(0, at - size)
            for candidate in (_left_out(best, start, at), _waited_out(best, start, at)):
                if self._tried(candidate):
                    best = candidate
                    break
            at = start
        return best

    def _hastened(self, steps: list[Step]) -> list[Step]:
        best = steps
        for at in range(len(best)):
            for seconds in (0.0, 1.0):
                if best[at].wait_s > seconds and self._tried(_waiting(best, at, seconds)):
                    best = _waiting(best, at, seconds)
                    break
        return best

    def _tried(self, steps: list[Step]) -> bool:
        if self.tries >= self._most:
            return False
        self.tries += 1
        return self._fails(steps)


def _left_out(steps: list[Step], start: int, end: int) -> list[Step]:
    return steps[:start] + steps[end:]


def _waited_out(steps: list[Step], start: int, end: int) -> list[Step]:
    """Leave acts out and their time in: it passes after the act before them."""
    waited = sum(step.wait_s for step in steps[start:end])
    if start == 0:
        return steps[end:]
    before = steps[start - 1]
    return [*steps[: start - 1], replace(before, wait_s=round(before.wait_s + waited, 3)), *steps[end:]]


def _waiting(steps: list[Step], at: int, seconds: float) -> list[Step]:
    return [*steps[:at], replace(steps[at], wait_s=seconds), *steps[at + 1 :]]
