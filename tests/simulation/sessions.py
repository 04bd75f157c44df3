"""One kind's session as the log tells it: what its list has named, how far it has seen, whether that went back."""

import msgspec

from schemas.objects import rv_after


class Session(msgspec.Struct):
    """One kind's session. `listing`: what its unfinished list has named; `rv`: how far it has seen."""

    number: int
    rewound: bool
    listing: set[str] | None
    process: int = 0
    rv: str = ""

    def reach(self, rv: str) -> None:
        """Note how far the watch has seen."""
        self.rv = rv if rv and rv_after(rv, self.rv) else self.rv

    def went_back(self, known: str, listed: str) -> bool:
        """Say whether a list, which is as new as the session, shows an object older than the session knew it."""
        return rv_after(known, listed) and not rv_after(known, self.rv)
