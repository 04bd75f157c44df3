"""Faults for budgets: whose units count, where, and who hears of it. Each plants itself."""

from typing import Any

import pytest

from binder import budgets, charging, decide_holdings, decide_set, decide_writes, declaring, evolve_objects
from binder.budgets import Budgets
from binder.charging import Charging
from binder.declaring import Declared
from binder.order import Line
from tests.binder.answering import answering


def budgets_ignored(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether a budget has units left."""
    for module in (decide_set, decide_holdings):
        patch.setattr(module, "first_over", answering(returned=None))


def parents_ignored(patch: pytest.MonkeyPatch) -> None:
    """A tenant is bound by its own budgets alone, and counts for itself alone (C28)."""
    patch.setattr(budgets, "line_of", lambda namespace: (namespace,))


def zero_is_unset(patch: pytest.MonkeyPatch) -> None:
    """A limit of zero is taken for none (C28)."""
    real = budgets.hard_of
    patch.setattr(budgets, "hard_of", lambda *args: {key: units for key, units in real(*args).items() if units})


def lost_count_nothing(patch: pytest.MonkeyPatch) -> None:
    """A Lost claim leaves its tenant's budget (B4)."""
    real = charging._of_holding
    patch.setattr(charging, "_of_holding", lambda holding: real(holding) if holding and holding.node else None)


def asked_again(patch: pytest.MonkeyPatch) -> None:
    """A set asks for what its held claims have already."""
    patch.setattr(Charging, "asked", lambda _, gpu_set: budgets.units_of([*gpu_set.claims, *gpu_set.held]))


def own_pods_are_raw(patch: pytest.MonkeyPatch) -> None:
    """A launcher counts under its resource too (C34)."""
    patch.setattr(Charging, "_is_own", answering(returned=False))


def budgets_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    """Who waits for a budget is not told that it has units again."""
    patch.setattr(Line, "waiting_for", lambda *_: [])


def use_is_told(patch: pytest.MonkeyPatch) -> None:
    """Whoever waits hears each time somebody else takes a unit (C59)."""
    for module in (decide_set, decide_holdings):
        patch.setattr(module, "told_alike", answering(returned=False))


def freed_units_stay(patch: pytest.MonkeyPatch) -> None:
    """What was charged once stays charged."""
    real: Any = Budgets.charge

    def charge(self: Budgets, table: str, key: str, one: Any) -> None:
        if one is not None:
            real(self, table, key, one)

    patch.setattr(Budgets, "charge", charge)


def releases_lose(patch: pytest.MonkeyPatch) -> None:
    """The budget that mirrors a tenant's release counts, not the release."""
    patch.setattr(budgets, "release_of_tenant", answering(returned=""))


def unreadable_is_unlimited(patch: pytest.MonkeyPatch) -> None:
    """A quota that can't be read is none (B1)."""
    patch.setattr(evolve_objects, "resolved", lambda _, view: view)


def writes_unchecked(patch: pytest.MonkeyPatch) -> None:
    """Whatever is declared, more may be written (B2)."""
    patch.setattr(decide_writes, "first_over", answering(returned=None))


def whole_writes_asked(patch: pytest.MonkeyPatch) -> None:
    """A write asks for all that it declares, not for what becomes more (B2)."""
    patch.setattr(Declared, "rise", lambda _, one: one.units)


def owners_unknown(patch: pytest.MonkeyPatch) -> None:
    """What a pool or a VM makes counts beside it (B2)."""
    patch.setattr(Declared, "maker_of", answering(returned=""))


def templates_alone(patch: pytest.MonkeyPatch) -> None:
    """What is below an owner counts nothing, be it more than its template says (B2)."""
    patch.setattr(declaring, "larger", lambda one, _: one)


def gone_stay_declared(patch: pytest.MonkeyPatch) -> None:
    """What was written once is declared for good (C50)."""
    patch.setattr(Declared, "_leave", answering(returned=None))
