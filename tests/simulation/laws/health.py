"""Processes die of nothing but what kills them, and nobody logs an error."""

from collections.abc import Iterator

from typing_extensions import override

from tests.simulation.laws.law import Law


class Health(Law):
    """No process ends by itself, no task fails unseen, no line is logged as an error."""

    @override
    def step(self) -> Iterator[str]:
        yield from (f"{name} failed: {error!r}" for name, error in self.world.failures)
        yield from (f"logged as an error: {line}" for line in self.world.shouts)
        self.world.failures.clear()
        self.world.shouts.clear()
