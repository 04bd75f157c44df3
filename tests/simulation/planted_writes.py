"""Faults in the answers to writes and orders, and in what is counted as declared, planted one at a time."""

from typing import Any

import pytest
from msgspec.structs import replace

from binder import budgets, decide_writes, declaring, starting
from schemas import decisions as d
from schemas.names import BUDGET_TOTAL
from webhooks import answers, asks, refusals, service, writes


def what_is_held_is_declared(patch: pytest.MonkeyPatch) -> None:
    """A write is held against what is held now: VMs that don't run are free of charge (B2)."""

    def first_over(known: Any, namespace: str, asked: Any, _used: Any = None) -> Any:
        return budgets.first_over(known, namespace, asked)

    patch.setattr(decide_writes, "first_over", first_over)


def refusals_count_twice(patch: pytest.MonkeyPatch) -> None:
    """What is asked is counted in what is said to be declared."""

    def first_over(*asked: Any) -> Any:
        over = budgets.first_over(*asked)
        return over and replace(over, used=over.used + over.asked)

    patch.setattr(decide_writes, "first_over", first_over)


def orders_need_no_room(patch: pytest.MonkeyPatch) -> None:
    """An order passes whatever is free (O1)."""
    patch.setattr(decide_writes, "fit", lambda _book, _need: ("somewhere",))


def scales_change_nothing(patch: pytest.MonkeyPatch) -> None:
    """A Scale is judged by the count that stands (T20)."""
    real = writes.scaled

    def scaled(review: Any, owner: Any) -> Any:
        view = real(review, owner)
        return view and replace(view, replicas=owner.replicas)

    patch.setattr(writes, "scaled", scaled)


def orders_fail_open(patch: pytest.MonkeyPatch) -> None:
    """An order that nobody answers stands (O1)."""

    async def order_verdict(self: service.Webhooks, body: bytes) -> Any:
        return await self._verdict("orders", body, self._budgets.order, open_=True)

    patch.setattr(service.Webhooks, "order_verdict", order_verdict)


def what_pools_make_counts_again(patch: pytest.MonkeyPatch) -> None:
    """A VM counts beside the pool that made it: the same units twice."""
    patch.setattr(declaring.Declared, "maker_of", lambda _self, _one: "")


def what_is_gone_stays_declared(patch: pytest.MonkeyPatch) -> None:
    """What a tenant deletes counts for ever."""
    patch.setattr(declaring.Declared, "_leave", lambda _self, _one: None)


def dry_runs_are_logged(patch: pytest.MonkeyPatch) -> None:
    """A dry run is asked over the log, as if it were meant (C25)."""

    async def ask_dry(self: asks.Asks, request: Any, deadline: float) -> Any:
        return await self.ask(request, deadline)

    patch.setattr(asks.Asks, "ask_dry", ask_dry)


def refusals_stand_for_a_minute(patch: pytest.MonkeyPatch) -> None:
    """Who was refused for a budget is told so for a minute, whatever came free (T13)."""
    patch.setattr(refusals, "PASSING_S", 60.0)


def budgets_refuse_every_start(patch: pytest.MonkeyPatch) -> None:
    """Under Refuse nothing starts where there is a budget, whatever it has left (A12, B3)."""

    def first_over(known: Any, namespace: str, asked: Any) -> Any:
        if not known.limits.get(namespace):
            return budgets.first_over(known, namespace, asked)
        return d.Over(namespace, "budget-0", BUDGET_TOTAL, 0, 0, 1)

    patch.setattr(starting, "first_over", first_over)


def held_claims_refuse_every_start(patch: pytest.MonkeyPatch) -> None:
    """Under Refuse no VM starts that names a held claim, whoever holds it (A12)."""
    real = starting._counted

    def counted(book: Any, event: Any) -> Any:
        found = real(book, event)
        return replace(found, asked=replace(found.asked, claims=())) if found.asked.claims else found

    patch.setattr(starting, "_counted", counted)


def answers_are_not_heard(patch: pytest.MonkeyPatch) -> None:
    """A webhook follows the log, and hands nobody the answers that it finds there."""
    patch.setattr(answers.Answers, "_settle", lambda _self, _answer: None)
