"""A law: told what happens, asked what is broken."""

from collections.abc import Iterator

from schemas.decisions import Decision
from schemas.objects import Stamp
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Broken(Exception):
    """A law was broken: its name, and what was seen."""

    def __init__(self, law: str, said: str) -> None:
        super().__init__(f"{law}: {said}")
        self.law = law
        self.said = said


class Law:
    """One law over one world. `found` collects what is broken until it is asked for."""

    def __init__(self, world: World, picture: Picture) -> None:
        self.world, self.picture = world, picture
        self.found: list[str] = []

    @property
    def name(self) -> str:
        """The law's name."""
        return type(self).__name__

    def decided(self, stamp: Stamp, decision: Decision) -> None:
        """Hear of a decision, before the picture shows it."""

    def anew(self) -> None:
        """Forget what a log said that is lost."""

    def step(self) -> Iterator[str]:
        """Say what is broken after an act."""
        yield from ()

    def pending(self) -> Iterator[str]:
        """Say what is not yet as it must be at rest, and may still become so."""
        yield from ()

    def rest(self) -> Iterator[str]:
        """Say what is broken once all troubles are over and the world came to rest."""
        yield from self.pending()
