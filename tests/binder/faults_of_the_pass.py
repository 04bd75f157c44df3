"""Faults for the pass: who is believed, served, placed or told wrongly. Each plants itself."""

from typing import Any

import pytest
from msgspec.structs import replace

from binder import (
    class_use,
    decide,
    decide_ends,
    decide_set,
    fairness,
    launchers,
    order,
    patience,
    picture,
    placement,
    skips,
    touched,
    usage,
)
from binder.book import Book
from binder.rules.serving import every_class_tolerates
from schemas import decisions as d
from schemas.names import GATE
from schemas.objects import PodView, VmiView
from schemas.reasons import Release, Wait
from tests.binder.answering import answering


def union_of_tolerations(patch: pytest.MonkeyPatch) -> None:
    """The pod's tolerations together are asked, as the scheduler would."""

    def together(classes: Any, node: Any) -> bool:
        return every_class_tolerates([[one for tolerations in classes for one in tolerations]], node)

    patch.setattr(placement, "every_class_tolerates", together)


def release_on_phase(patch: pytest.MonkeyPatch) -> None:
    """The VMI's phase ends the booking."""
    real = decide_ends._ended

    def ended(book: Book, gpu_set: Any, vmi: VmiView | None) -> Release | None:
        return Release.VMI_GONE if vmi is None or vmi.phase == "Failed" else real(book, gpu_set, vmi)

    patch.setattr(decide_ends, "_ended", ended)


def copied_stamps_believed(patch: pytest.MonkeyPatch) -> None:
    """A stamp is a stamp."""
    patch.setattr(Book, "is_copied", answering(returned=False))


def anybody_is_listed(patch: pytest.MonkeyPatch) -> None:
    """status.activePods is not asked."""
    patch.setattr(launchers, "_is_listed", lambda pod, *_: pod.launcher and not pod.ended and GATE in pod.gates)


def any_stamp_is_admitted(patch: pytest.MonkeyPatch) -> None:
    """The owner reference is enough."""

    def launcher_of(self: Book, vmi: VmiView) -> PodView | None:
        return launchers.newest(launchers.gated_launchers(self.state, vmi, self.index.pods_by_vmi.of(vmi.uid)))

    patch.setattr(Book, "launcher_of", launcher_of)


def foreign_gates_ignored(patch: pytest.MonkeyPatch) -> None:
    """A pod is placed while another controller holds it."""
    real = decide_set._standing

    def standing(book: Book, vmi: VmiView, gpu_set: Any, pod: PodView) -> Any:
        return real(book, vmi, gpu_set, replace(pod, gates=(GATE,)))

    patch.setattr(decide_set, "_standing", standing)


def mismatch_ignored(patch: pytest.MonkeyPatch) -> None:
    """A pod that requests something else than its set is let go."""
    patch.setattr(decide_set, "requests_match", answering(returned=True))


def reasons_repeated(patch: pytest.MonkeyPatch) -> None:
    """A reason is told at every look."""

    def waits(vmi: Any, _: object, reason: Any, message: str) -> d.SetWaits:
        return d.SetWaits(d.VmiId(vmi.namespace, vmi.name, vmi.uid), reason, message)

    patch.setattr(decide_set, "_waits", waits)


def reasons_stale(patch: pytest.MonkeyPatch) -> None:
    """Who lacked cores is not told that the units are gone too."""
    patch.setattr(touched.Touched, "shrunk", answering(returned=[]))


def nearest_is_last(patch: pytest.MonkeyPatch) -> None:
    """The reason is that of any node."""
    patch.setattr(placement, "_nearer", lambda *both: both[1])


def priority_ignored(patch: pytest.MonkeyPatch) -> None:
    """The queue knows no priority classes."""
    real = order.rank_of
    patch.setattr(picture, "rank_of", lambda state, uid, key, *_: real(state, uid, key, None))


def emptiest_first(patch: pytest.MonkeyPatch) -> None:
    """Sets are spread."""
    real = usage.Usage.roomy
    patch.setattr(usage.Usage, "roomy", lambda self, name, count: iter([*real(self, name, count)][::-1]))


def volumes_of_one_node(patch: pytest.MonkeyPatch) -> None:
    """Only the first volume is asked where it is."""

    def first(state: Any, vmi: Any, pod: Any) -> Any:
        found = launchers.volume_terms(state, vmi, pod)
        return found[:1] if found else found

    patch.setattr(decide_set, "volume_terms", first)


def missing_volumes_ignored(patch: pytest.MonkeyPatch) -> None:
    """A volume that is not there restricts nothing."""
    real = launchers.volume_terms
    patch.setattr(decide_set, "volume_terms", lambda state, vmi, pod: real(state, vmi, pod) or ())


def class_of_now(patch: pytest.MonkeyPatch) -> None:
    """A set is counted by what its class is called now."""

    def units(gpu_set: Any) -> dict[str, int]:
        return {name.replace("L40S", "NEW"): count for name, count in usage.units(gpu_set).items()}

    patch.setattr(decide_set, "units", units)


def strays_left(patch: pytest.MonkeyPatch) -> None:
    """A claim under a decided name is decided, whatever it says."""
    patch.setattr(decide, "_is_decided", lambda book, claim: claim.key in book.claim_sets)


def waiting_for_rooms_deaf(patch: pytest.MonkeyPatch) -> None:
    """Room that comes wakes nobody."""
    patch.setattr(touched.Touched, "_roomy", answering(returned=[]))


def set_in_parts(patch: pytest.MonkeyPatch) -> None:
    """A set is placed where its first resource fits."""
    real = decide_set.need_of

    def need_of(book: Book, vmi: VmiView, gpu_set: Any, pod: PodView) -> Any:
        need = real(book, vmi, gpu_set, pod)
        if isinstance(need, Wait):
            return need
        first = dict(list(need.units.items())[:1])
        return replace(need, units=first, requests={})

    patch.setattr(decide_set, "need_of", need_of)


def skips_ignored(patch: pytest.MonkeyPatch) -> None:
    """A node that refused the VM is as good as any other."""
    patch.setattr(skips.Skips, "of", answering(returned=()))


def kept_node_given_away(patch: pytest.MonkeyPatch) -> None:
    """What becomes free on the kept node goes to whoever fits."""
    patch.setattr(decide_set, "kept_from", answering(returned=""))


def kept_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A node stays kept for one that is placed, gone, or can't be there any more."""
    patch.setattr(fairness.Keeping, "ends", answering(returned=None))


def kept_in_vain(patch: pytest.MonkeyPatch) -> None:
    """A node is kept for one that it could never take."""
    for module in (placement, fairness):
        patch.setattr(module, "could_take", answering(returned=True))


def nothing_kept_next(patch: pytest.MonkeyPatch) -> None:
    """Where the last one has ended, nobody asks who is next."""
    patch.setattr(fairness.Keeping, "follows", answering(returned=None))


def first_choice_kept(patch: pytest.MonkeyPatch) -> None:
    """Which node is nearest is asked once."""
    patch.setattr(patience.Patience, "review", answering(returned=None))


def class_gone_before_its_claims(patch: pytest.MonkeyPatch) -> None:
    """A class goes while claims of it are there."""
    patch.setattr(class_use.ClassUse, "is_used", answering(returned=False))


def finalizers_wait_for_kubevirt(patch: pytest.MonkeyPatch) -> None:
    """A kind that is not served is waited for."""
    patch.setattr(decide, "may_finalize", lambda book: not book.behind)


def classes_guarded_again_and_again(patch: pytest.MonkeyPatch) -> None:
    """What was said of a class is forgotten."""
    patch.setattr(class_use.ClassUse, "said", answering(returned=None))
