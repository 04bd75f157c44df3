"""Faults about a cluster without KubeVirt: nothing or too much is decided there. Each plants itself."""

from collections.abc import Callable

import pytest

from binder import evolve_objects, picture
from binder.picture import Picture
from binder.state import KUBEVIRT_KINDS, State
from tests.binder.answering import answering


def orders_wait_for_kubevirt(patch: pytest.MonkeyPatch) -> None:
    """Nothing is placed while a kind is not served, whatever needs it."""
    patch.setattr(Picture, "may_place_claims", lambda self: not self.behind)


def claims_of_vms_moved_blindly(patch: pytest.MonkeyPatch) -> None:
    """What a VMI holds leaves its node while nobody sees the VMI."""
    patch.setattr(Picture, "is_held_up", answering(returned=False))


def unserved_is_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What an earlier leader was told of a kind that is not served counts for the next one."""

    def is_absent(state: State, kind: str) -> bool:
        session = state.sessions.get(kind)
        return kind in KUBEVIRT_KINDS and session is not None and not session.served

    patch.setattr(picture, "is_absent", is_absent)


def any_kind_may_be_missing(patch: pytest.MonkeyPatch) -> None:
    """A kind that is being listed anew is taken for one that is not served."""
    patch.setattr(picture, "is_absent", lambda state, kind: kind in KUBEVIRT_KINDS and kind in state.sessions)


def nobody_asked_again_after_the_reinstall(patch: pytest.MonkeyPatch) -> None:
    """Who could not be looked at while nodes changed is forgotten."""
    patch.setattr(evolve_objects, "KUBEVIRT_KINDS", ())


Plant = Callable[[pytest.MonkeyPatch], None]
STORY = "claims-without-kubevirt"
FAULTS: tuple[tuple[Plant, str, bool], ...] = (
    (orders_wait_for_kubevirt, STORY, False),
    (claims_of_vms_moved_blindly, STORY, True),
    (unserved_is_for_ever, STORY, False),
    (any_kind_may_be_missing, STORY, True),
    (nobody_asked_again_after_the_reinstall, STORY, False),
)
