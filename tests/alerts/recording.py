"""Scrapes of a real process, one after the other, as series that rules and queries are asked about."""

from collections.abc import Sequence

from tests.deploy.scraping import Scrape


class Recording:
    """Scrapes in their order; None where there was no answer."""

    def __init__(self) -> None:
        self._scrapes: list[Scrape | None] = []

    def add(self, scrape: Scrape | None) -> None:
        """Take the next scrape."""
        self._scrapes.append(scrape)

    def series(self, *, lasting: int) -> dict[str, str]:
        """Return each series with its values; the last scrape goes on as it is, this many times more."""
        scrapes: Sequence[Scrape | None] = [*self._scrapes, *self._scrapes[-1:] * lasting]
        told = [{one.series(): one.value for one in scrape.samples} if scrape else {} for scrape in scrapes]
        names = dict.fromkeys(name for one in told for name in one)
        return {name: " ".join(f"{one[name]:g}" if name in one else "stale" for one in told) for name in names}
