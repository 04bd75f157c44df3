"""Equal refusals within a minute are logged once, with a count: a tenant's flood of retries fills no log (T13).

KubeVirt asks again after milliseconds, and again. Two requests are equal when all that the rules read is:
the same VM, the same entries, the same evidence. A changed class or a corrected VM is another request.
"""

import asyncio
import hashlib
from collections import OrderedDict

import msgspec
from msgspec.structs import replace

from schemas.answers import Answer
from schemas.decisions import Refused
from schemas.events import OrderRequest, PodRequest, VmiRequest, WriteRequest, encode_event
from schemas.objects import Stamp
from schemas.reasons import Refusal

Request = VmiRequest | PodRequest | WriteRequest | OrderRequest

REMEMBERED_S = 60.0
PASSING = (Refusal.OVER_BUDGET, Refusal.NO_UNITS, Refusal.NOT_READY)
PASSING_S = 1.0
"""A refusal that leans on what is used at this moment stands for its equals this long: units come free."""

KEPT_MAX = 4096


class _Refusal(msgspec.Struct):
    refused: Refused
    until: float
    repeats: int = 0


class RecentRefusals:
    """Refusals of the last minute, by request without its uid. `seconds`: how long one stands for its equals."""

    def __init__(self, seconds: float = REMEMBERED_S) -> None:
        self._seconds = seconds
        self._kept: OrderedDict[bytes, _Refusal] = OrderedDict()

    def again(self, request: Request) -> Refused | None:
        """Return the refusal of an equal request that is not yet a minute old, addressed to this one."""
        known = self._known(request)
        if known is None or known.until <= asyncio.get_running_loop().time():
            return None
        known.repeats += 1
        return replace(known.refused, request=request.request)

    def counted(self, request: Request) -> Request:
        """Return the request as it goes to the log: with how many equals were refused unlogged before it."""
        known = self._known(request)
        return request if known is None else replace(request, repeats=known.repeats)

    def learn(self, request: Request, answer: Answer) -> None:
        """Remember a refusal, or forget what an admitted request was refused for before."""
        if not self._kept and not isinstance(answer, Refused):
            return
        essence = _essence(request)
        self._kept.pop(essence, None)
        if isinstance(answer, Refused):
            seconds = min(self._seconds, PASSING_S) if answer.reason in PASSING else self._seconds
            self._kept[essence] = _Refusal(answer, asyncio.get_running_loop().time() + seconds)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)

    def _known(self, request: Request) -> _Refusal | None:
        # While nothing is remembered, which is most often, nothing is compared.
        return self._kept.get(_essence(request)) if self._kept else None


def _essence(request: Request) -> bytes:
    """Return a digest of all that the rules read of a request.

    A class whose counts alone changed is the same class; so is a claim that is shown elsewhere. Tenants choose
    how long their requests are, up to a megabyte: thousands of them are not kept whole.
    """
    bare = replace(request, request="", repeats=0)
    if isinstance(bare, WriteRequest):
        return _digest(replace(bare, view=replace(bare.view, rv="", uid="")))
    bare = replace(bare, classes=tuple(replace(view, rv="") for view in bare.classes))
    if not isinstance(bare, PodRequest) and bare.home is not None:
        bare = replace(bare, home=replace(bare.home, rv=""))
    if isinstance(bare, OrderRequest):
        return _digest(bare)
    claims = tuple(replace(view, rv="", phase="", node="", stamp=Stamp(), finalizers=()) for view in bare.claims)
    bare = replace(bare, claims=claims)
    if isinstance(bare, VmiRequest) and bare.kubevirt is not None:
        bare = replace(bare, kubevirt=replace(bare.kubevirt, rv=""))
    return _digest(bare)


def _digest(bare: Request) -> bytes:
    return hashlib.sha256(encode_event(bare)).digest()
