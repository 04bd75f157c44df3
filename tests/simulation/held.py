"""The checkers' own picture of held claims: what was observed and decided of each, folded apart from the program."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from schemas import decisions as d
from schemas.objects import AnyView, ClaimView, Gone


class Held(msgspec.Struct, frozen=True):
    """A held claim. `attached`: uid of the VMI that holds it; `lost`, `reason`: as last decided.

    `was_placed`: it was on a node once.
    """

    key: str
    uid: str
    class_name: str
    count: int
    resource: str = ""
    node: str = ""
    lost: str = ""
    reason: str = ""
    attached: str = ""
    freed: bool = False
    was_placed: bool = False

    @property
    def counts(self) -> bool:
        """Whether it counts against budgets: it is on a node, or Lost after it was on one (B4)."""
        return bool(self.node) or bool(self.lost and self.was_placed)


class HeldClaims:
    """Held claims by key, as the log has them."""

    def __init__(self) -> None:
        self.claims: dict[str, Held] = {}

    def see(self, view: AnyView | Gone) -> None:
        """Follow what is observed: a claim is there from its first sight until it is seen gone."""
        known = self.claims.get(view.key)
        if isinstance(view, Gone):
            self.drop(view.key)
        elif isinstance(view, ClaimView) and not view.template and (known is None or known.uid != view.uid):
            self.claims[view.key] = Held(view.key, view.uid, view.class_name, view.count)

    def drop(self, key: str) -> None:
        """Forget a claim that is gone."""
        self.claims.pop(key, None)

    def decided(self, decision: d.Decision) -> None:
        """Fold a decision."""
        match decision:
            case d.SetOpened():
                self._attach(decision)
            case d.SetBooked():
                self._attach(decision)
                for one in self.of(decision.vmi.uid):
                    self._put(one, node=decision.node, lost="", reason="")
            case d.SetPlaced():
                for one in self.of(decision.vmi.uid):
                    self._put(one, node=decision.node, lost="", reason="", was_placed=True)
            case d.SetClosed():
                for one in self.of(decision.vmi.uid):
                    self._put(one, attached="")
            case d.SetAdopted():
                for claim, one in self.named(decision.vmi.namespace, decision.held):
                    self._put(
                        one, node=decision.node, attached=decision.vmi.uid, resource=claim.resource, was_placed=True
                    )
            case d.HeldAdopted():
                for claim, one in self.named(decision.namespace, decision.claims):
                    lost = str(decision.lost) if decision.lost is not None else ""
                    self._put(one, node=decision.node, resource=claim.resource, lost=lost, was_placed=True)
            case d.HeldPlaced():
                for claim, one in self.named(decision.namespace, decision.claims):
                    self._put(one, node=decision.node, resource=claim.resource, lost="", reason="", was_placed=True)
            case d.HeldLost():
                for _, one in self.named(decision.namespace, decision.claims):
                    self._put(one, node="", lost=str(decision.reason), reason="")
            case d.HeldWaits():
                for _, one in self.named(decision.namespace, decision.claims):
                    self._put(one, reason=str(decision.reason))
            case d.HeldFreed():
                known = self.claims.get(f"{decision.namespace}/{decision.name}")
                if known is not None and known.uid == decision.uid:
                    self._put(known, node="", lost="", reason="", attached="", freed=True)
            case _:
                pass

    def _attach(self, decision: d.SetOpened | d.SetBooked) -> None:
        named = {one.key: claim for claim, one in self.named(decision.vmi.namespace, decision.held)}
        for one in self.of(decision.vmi.uid):
            if one.key not in named:
                self._put(one, attached="")
        for key, claim in named.items():
            one = self.claims[key]
            if one.freed:
                continue
            self._put(one, attached=decision.vmi.uid, resource=one.resource or claim.resource, reason="")

    def _put(self, one: Held, **changes: object) -> None:
        self.claims[one.key] = replace(one, **changes)

    def of(self, uid: str) -> list[Held]:
        """Return the claims that a VMI holds."""
        return [one for one in self.claims.values() if one.attached == uid]

    def named(self, namespace: str, claims: Iterable[d.HeldClaim]) -> Iterator[tuple[d.HeldClaim, Held]]:
        """Return the claims that a decision names, as they stand: those that are gone since are passed over."""
        for claim in claims:
            one = self.claims.get(f"{namespace}/{claim.name}")
            if one is not None and one.uid == claim.uid:
                yield claim, one

    def used(self, node: str, resource: str, booked: Iterable[str]) -> int:
        """Count the units on a node that no booking counts: `booked`, VMIs whose launchers' requests cover theirs."""
        covered = frozenset(booked)
        return sum(
            one.count
            for one in self.claims.values()
            if one.node == node and one.resource == resource and one.attached not in covered
        )
