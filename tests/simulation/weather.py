"""What goes wrong between the program and its servers, for how long, and for whom: set by acts, asked at every door."""

import msgspec

from binder.kube import ApiError
from tests.simulation.chance import Chance
from tests.simulation.lanes import Moment

CALM_SHARE = 0.7
"""So many calls are answered at once; the others take up to `CALM_S`."""
CALM_S = 0.03
REASONS = {
    0: "Unreachable",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


DESK, LAST_WORDS = "desk", "last words"
"""Spells that are in the way of the API server's calls to the webhooks alone; and those that wait for a death."""


class Spell(msgspec.Struct, frozen=True):
    """A while in which a share of calls goes wrong.

    `who`: the start of a process's name, '' for all; `once`: one call alone.
    """

    kind: str
    until: float
    share: float
    who: str = ""
    code: int = 0
    seconds: float = 0.0
    once: bool = False


class Weather:
    """All spells of a world. `offset_ns`: how far the stamps of the stream's leader are off."""

    def __init__(self, moment: Moment, chance: Chance) -> None:
        self._moment = moment
        self._chance = chance
        self._spells: list[Spell] = []
        self._last_s = {DESK: -1.0, "": -1.0}
        self.offset_ns = 0

    def begin(self, spell: Spell) -> None:
        """Let a spell begin."""
        self._spells.append(spell)
        if spell.kind != LAST_WORDS:
            way = DESK if spell.kind.startswith(DESK) else ""
            self._last_s[way] = max(self._last_s[way], spell.until)

    def last_s(self, way: str = "") -> float:
        """Return until when the newest trouble is or was, of the API server's calls to webhooks or of all others."""
        return self._last_s[way]

    def clear(self) -> None:
        """Let all be well from now on."""
        self._spells.clear()
        self._last_s = {way: min(last_s, self._moment.now) for way, last_s in self._last_s.items()}

    def strikes(self, kind: str, who: str) -> Spell | None:
        """Return the spell that strikes this call, None where none does."""
        if not self._spells:
            return None
        self._spells = [spell for spell in self._spells if spell.until > self._moment.now]
        for spell in self._spells:
            hit = spell.kind == kind and who.startswith(spell.who)
            if hit and (spell.share >= 1 or self._chance.draw(f"{kind} {who}") < spell.share):
                if spell.once:
                    self._spells.remove(spell)
                return spell
        return None

    def refusal(self, who: str) -> tuple[ApiError, bool] | None:
        """Return what the API server answers instead, and whether it does what was asked nevertheless."""
        spell = self.strikes("api", who)
        if spell is None:
            return None
        unclear = spell.code in {0, 500}
        lands = unclear and self._chance.draw(f"lands {who}") < 0.5
        return ApiError(spell.code, REASONS[spell.code], "broken on purpose"), lands

    def delay(self, way: str, who: str) -> float:
        """Return how long a call takes on its way, in seconds."""
        drawn = self._chance.draw(f"{way} {who}")
        slow = self.strikes(f"slow {way}", who)
        if slow is not None:
            return slow.seconds * drawn
        return 0.0 if drawn < CALM_SHARE else CALM_S * (drawn - CALM_SHARE)
