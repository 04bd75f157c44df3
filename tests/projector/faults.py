"""What goes wrong for a projector: it dies at a chosen write, or the API server answers that one wrongly."""

import asyncio
from collections.abc import Mapping
from enum import Enum, auto

from binder.kube import ApiError, Cause, Kube
from deploy.world.faults import Call, Fault, FaultyKube
from schemas.kinds import WORKLOAD, Resource

_WRITES = frozenset({"create", "replace", "patch", "delete"})


class Mishap(Enum):
    """What happens at one write: the writer dies or the server fails, before or after the write has landed."""

    DEAD_BEFORE = auto()
    DEAD_AFTER = auto()
    LOST_BEFORE = auto()
    LOST_AFTER = auto()
    BUSY = auto()
    BROKEN_AFTER = auto()


DEADLY = frozenset({Mishap.DEAD_BEFORE, Mishap.DEAD_AFTER})
_LANDS = frozenset({Mishap.DEAD_AFTER, Mishap.LOST_AFTER, Mishap.BROKEN_AFTER})
_ANSWERS = {Mishap.BUSY: (429, "TooManyRequests"), Mishap.BROKEN_AFTER: (500, "InternalError")}


class Life:
    """One projector's life: by the number of a write, from 0, what goes wrong with it.

    `died` is set once it is dead: then it reaches nobody any more. `writes` counts its tries; usage records,
    which are compared with what stands and written when they differ, are not among them.
    """

    def __init__(self, kube: Kube, mishaps: Mapping[int, Mishap]) -> None:
        self.kube = FaultyKube(kube, self._asked)
        self.died = asyncio.Event()
        self.writes = 0
        self._mishaps = mishaps

    async def _asked(self, call: Call) -> Fault | None:
        if self.died.is_set():
            await asyncio.Event().wait()
        if call.verb not in _WRITES or call.resource == WORKLOAD:
            return None
        mishap = self._mishaps.get(self.writes)
        self.writes += 1
        if mishap is None:
            return None
        if mishap in DEADLY:
            self.died.set()
        code, reason = _ANSWERS.get(mishap, (0, "Unreachable"))
        return Fault(ApiError(code, reason, "broken on purpose"), lands=mishap in _LANDS)


class Refusal:
    """Every write of one kind is refused with `error`, as by an admission rule or a quota, until it is `over`."""

    def __init__(self, error: ApiError, resource: Resource) -> None:
        self.over = False
        self._error = error
        self._resource = resource

    def door(self, kube: Kube) -> Kube:
        """Return the API server behind this refusal."""
        return FaultyKube(kube, self._asked)

    async def _asked(self, call: Call) -> Fault | None:
        refused = not self.over and call.verb in _WRITES and call.resource == self._resource
        return Fault(self._error) if refused else None


class Hold:
    """The first write of one kind's status waits: `reached` says that it does, `release` lets it go on."""

    def __init__(self, resource: Resource) -> None:
        self.reached = asyncio.Event()
        self.release = asyncio.Event()
        self._resource = resource

    def door(self, kube: Kube) -> Kube:
        """Return the API server behind this hold."""
        return FaultyKube(kube, self._asked)

    async def _asked(self, call: Call) -> Fault | None:
        if call.resource == self._resource and call.subresource == "status":
            self.reached.set()
            await self.release.wait()
        return None


def refusing(kube: Kube, resource: Resource, error: ApiError) -> Kube:
    """Return an API server that refuses every write of one kind."""
    return Refusal(error, resource).door(kube)


def forbidden(field: str) -> ApiError:
    """A refusal whose message tells a secret."""
    return ApiError(403, "Forbidden", "hunter2 is not allowed", (Cause(field, "FieldValueForbidden"),))
