"""A waiting claim's place in line, in its status: from the folded state, the first twenty, at most once a second.

A position is no decision: it stands beside one, under that decision's stamp. The next decision's status replaces
it; the position is written anew once that status is seen.
"""

import asyncio
from collections.abc import Iterator

import msgspec
import structlog
from typing_extensions import override

from binder.book import Book
from binder.holdings import key_of
from binder.kube import ApiError, Kube, PatchKind
from binder.state import State
from projector.paced import Paced
from schemas import pinning
from schemas.claims import ClaimStatus
from schemas.conditions import ShownStamp
from schemas.kinds import GPU_CLAIM
from schemas.objects import ClaimView, Stamp
from schemas.writes import SeenMetadata

FIRST_IN_LINE = 20
"""Who stands behind has no position shown: one that leaves the line would else rewrite thousands of claims."""

AT_ONCE = 16
_PLAIN_REFUSALS = (404, 422)
_UNCLEAR = -1
_encode = msgspec.json.Encoder().encode

log = structlog.get_logger()


class _Metadata(SeenMetadata, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""


class _Listed(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: ClaimStatus | None = None


_listed = msgspec.json.Decoder(_Listed)


class _Shown(msgspec.Struct, frozen=True):
    """What a claim of that uid shows beside the status of a decision; `_UNCLEAR` where no answer told."""

    uid: str
    stamp: Stamp
    position: int


def positions(book: Book) -> dict[str, int]:
    """Return the place in line of claims (namespace/name): of the first sets, and of the first groups of held claims.

    All claims of a set have its place, held ones too. Groups that no launcher waits for have a line of their own.
    """
    state, found = book.state, dict[str, int]()
    for place, uid in enumerate(book.line.first(FIRST_IN_LINE), 1):
        namespace = state.sets[uid].vmi.namespace
        found.update({f"{namespace}/{claim.name}": place for claim in state.sets[uid].claims})
        found.update({key_of(one): place for one in book.held.of(uid)})
    for place, group in enumerate(book.held.line.first(FIRST_IN_LINE), 1):
        found.update({key_of(one): place for one in book.held.of(group) if not one.node})
    return found


def newest(state: State, claim: ClaimView) -> Stamp:
    """Return the newest decision that the claim's status is to show."""
    holding = state.holdings.get(claim.key)
    owner = claim.owner_uid
    if holding is not None:
        owner = holding.attached.uid if holding.attached is not None else ""
    gpu_set = state.sets.get(owner)
    told = gpu_set.stamp if gpu_set is not None else Stamp()
    return max(told, holding.stamp) if holding is not None else told


class QueuePositions(Paced):
    """Keeps positions in claims true. `changed()` after each step; `run(book)` beside them."""

    def __init__(self, kube: Kube) -> None:
        super().__init__()
        self._kube = kube
        self._shown: dict[str, _Shown] = {}
        self._listed = False

    @override
    def look_again(self) -> None:
        """List again which claims show a position."""
        self._listed = False
        super().look_again()

    @override
    async def write(self, book: Book) -> None:
        """Write each claim whose status does not show its place in line now, several side by side."""
        if not self._listed and not await self._list():
            return
        room = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            for claim, position in list(self._due(book)):
                tasks.create_task(self._write_one(room, claim, position))

    async def _list(self) -> bool:
        """Read once which claims show a position: those that an earlier start left there are known by nothing else."""
        token, first = "", True
        self._shown.clear()
        try:
            while first or token:
                page = await self._kube.list_page(GPU_CLAIM, continue_token=token)
                token, first = page.continue_token, False
                for item in page.items:
                    self._note(item)
        except ApiError as error:
            log.info("positions.not-listed", code=error.code, reason=error.reason)
            self._news.set()
            return False
        self._listed = True
        return True

    def _note(self, item: msgspec.Raw) -> None:
        try:
            claim = _listed.decode(item)
        except msgspec.DecodeError:
            # Nothing that we wrote: whoever follows the kind says what is wrong with it.
            return
        status, metadata = claim.status, claim.metadata
        if status is not None and status.queue_position is not None and status.stamp is not None:
            shown = _Shown(metadata.uid, status.stamp.stamp, status.queue_position)
            self._shown[f"{metadata.namespace}/{metadata.name}"] = shown

    def _due(self, book: Book) -> Iterator[tuple[ClaimView, int]]:
        """Yield the claims to write with their positions, 0 where there is to be none any more.

        None whose status is about to be written: that would take the position off again, or does already.
        """
        wanted = positions(book)
        for key in [*wanted, *(key for key in self._shown if key not in wanted)]:
            claim, shown, position = book.state.claim(key), self._shown.get(key), wanted.get(key, 0)
            if shown is not None and (claim is None or (claim.uid, claim.stamp) != (shown.uid, shown.stamp)):
                # Another claim by now, or the status of a later decision: the position went with what it stood in.
                del self._shown[key]
                shown = None
            if claim is None or claim.stamp < newest(book.state, claim) or claim.stamp == Stamp():
                continue
            if position != (shown.position if shown is not None else 0):
                yield claim, position

    async def _write_one(self, room: asyncio.Semaphore, claim: ClaimView, position: int) -> None:
        path = f"{pinning.STATUS_PATH}/queuePosition"
        patch: list[dict[str, object]] = [
            {"op": "test", "path": pinning.UID_PATH, "value": claim.uid},
            {"op": "test", "path": f"{pinning.STATUS_PATH}/stamp", "value": ShownStamp.of(claim.stamp)},
            {"op": "add", "path": path, "value": position} if position else {"op": "remove", "path": path},
        ]
        async with room:
            try:
                await self._kube.patch(
                    GPU_CLAIM, claim.namespace, claim.name, _encode(patch), kind=PatchKind.JSON, subresource="status"
                )
            except ApiError as error:
                log.info("position.not-written", claim=claim.key, code=error.code, reason=error.reason)
                if error.code in _PLAIN_REFUSALS:
                    # The claim is not as it was seen: what becomes of it is seen soon, and looked at then.
                    self._shown.pop(claim.key, None)
                else:
                    self._shown[claim.key] = _Shown(claim.uid, claim.stamp, _UNCLEAR)
                    self._news.set()
                return
        if position:
            self._shown[claim.key] = _Shown(claim.uid, claim.stamp, position)
        else:
            self._shown.pop(claim.key, None)
