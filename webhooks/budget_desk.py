"""The desk for writes and orders: a review, the evidence read for it, the binder's answer."""

from collections.abc import Awaitable, Callable
from typing import cast

from schemas.admission import CREATE, SCALE, UPDATE
from schemas.answers import Answer
from schemas.decisions import WritePassed
from schemas.events import OrderRequest, Writable, WriteRequest
from schemas.kinds import GPU_CLAIM, Resource
from schemas.objects import Gone, VmiView
from webhooks import orders, writes
from webhooks.evidence import FreshReads, Named
from webhooks.limits import NamespaceLimit
from webhooks.reviews import MalformedReview, Review, TurnedAway, allow
from webhooks.verdicts import Verdict, refused, untouched

Ask = Callable[[Review, WriteRequest | OrderRequest, float], Awaitable[Answer]]


class BudgetDesk:
    """Answers reviews of what declares units, and of orders. `home`: where the settings stand."""

    def __init__(self, fresh: FreshReads, limit: NamespaceLimit, ask: Ask, home: str) -> None:
        self._fresh, self._limit, self._ask, self._home = fresh, limit, ask, home

    async def write(self, review: Review, deadline: float) -> Verdict:
        """Answer a write that declares units. Raises `TurnedAway` where it can't be checked."""
        kind = writes.DECLARING.get(review.resource.resource)
        if kind is None or review.resource.group != kind.group:
            raise MalformedReview(f"{review.resource.resource[:64]} was sent to the webhook for what declares GPUs")
        if review.operation not in {CREATE, UPDATE} or review.sub_resource not in {"", SCALE}:
            return untouched(review)
        async with self._limit.turn(review.namespace, deadline):
            request = await self._request(review, kind, deadline)
            if request is None:
                return untouched(review)
            answer = await self._ask(review, request, deadline)
        return Verdict("admitted", allow(review.uid)) if isinstance(answer, WritePassed) else refused(review, answer)

    async def _request(self, review: Review, kind: Resource, deadline: float) -> WriteRequest | None:
        """Read what is written and what stands; None where there is nothing to ask about."""
        if review.sub_resource == SCALE:
            # In the version that was written: a cluster may serve that alone.
            version = review.resource.version or kind.version
            place = Resource(kind.group, version, kind.plural, kind.kind, namespaced=True)
            owner = await self._fresh.owner(place, review.namespace, review.name, deadline)
            view = writes.scaled(review, owner)
            return writes.request_of(review, view, cast("Writable", owner)) if view is not None else None
        written = self._fresh.declared(kind.plural, review.object)
        if isinstance(written, Gone) or written.deleting:
            return None
        own = False
        if isinstance(written, VmiView):
            evidence = await self._fresh.read(review.namespace, Named(), (), deadline)
            own = writes.is_kubevirts_own(review, evidence.kubevirt, written)
            if own and writes.is_asked_about_later(written):
                return None
        before = self._standing(kind, review) if review.operation == UPDATE else None
        return writes.request_of(review, written, before, own=own)

    def _standing(self, kind: Resource, review: Review) -> Writable | None:
        """Return what stands before the write, None where that declares nothing or can't be read.

        It is evidence and decides nothing: what a tenant left unreadable is no way past a budget for what comes next.
        """
        try:
            before = self._fresh.declared(kind.plural, review.old_object)
        except TurnedAway:
            return None
        return None if isinstance(before, Gone) else before

    async def order(self, review: Review, deadline: float) -> Verdict:
        """Answer an order. Raises `TurnedAway` where it can't be answered: nothing is ordered then."""
        if (review.kind.group, review.kind.kind) != (GPU_CLAIM.group, GPU_CLAIM.kind):
            raise MalformedReview(f"{review.kind.kind[:64]} was sent to the webhook for {GPU_CLAIM.kind}")
        if review.operation != CREATE or review.sub_resource:
            return untouched(review)
        claim = orders.read_claim(review.object)
        async with self._limit.turn(review.namespace, deadline):
            if claim.is_of_a_template:
                settings = await self._fresh.settings(self._home, deadline)
                if orders.may_make_template_claims(review, settings, self._home):
                    return untouched(review)
                raise orders.forged()
            evidence = await self._fresh.read(review.namespace, Named((claim.spec.class_name,)), (), deadline)
            answer = await self._ask(review, orders.request_of(review, claim, evidence), deadline)
        return Verdict("admitted", allow(review.uid)) if isinstance(answer, WritePassed) else refused(review, answer)
