"""What the world must show of licences: an effect for each decision, in a lane for each copy and each class (pure)."""

from collections.abc import Iterator

from binder.licences import LicenceDecision, class_key, licence_key
from binder.state import State
from projector.effects import CopyLicence, DropLicence, ShowLicence, Warn
from projector.plan_held import event_name
from schemas import decisions as d
from schemas.decisions import VmiId
from schemas.kinds import SECRET
from schemas.objects import ClassView, Stamp
from schemas.reasons import Licence

LicenceEffect = CopyLicence | DropLicence | ShowLicence | Warn
BLOCKED_REASON = "LicenceNotCopied"
NOBODY = VmiId("", "", "")
NOTHING_MISSING = (False, Licence.FOUND.value, "nothing is missing")


def licence_effect(decision: LicenceDecision, stamp: Stamp) -> tuple[str, LicenceEffect]:
    """Return the lane and the effect of a decision; a warning has a lane of its own, as it overtakes no write."""
    lane = _lane(licence_key(decision))
    match decision:
        case d.LicenceCopied():
            place = VmiId(decision.namespace, "", "")
            return lane, CopyLicence(place, decision.name, stamp, decision.gpu_class, decision.source, decision.digest)
        case d.LicenceDropped():
            return lane, DropLicence(VmiId(decision.namespace, "", ""), decision.name, decision.uid)
        case d.LicenceMissing():
            return lane, ShowLicence(
                NOBODY, decision.name, decision.uid, decision.missing, decision.reason, decision.message
            )
        case d.LicenceBlocked():
            about = VmiId(decision.namespace, decision.name, "")
            name = event_name(decision.name, "", stamp)
            return f"{lane} blocked", Warn(about, name, stamp, BLOCKED_REASON, decision.message, SECRET)


def open_licences(state: State) -> Iterator[tuple[str, LicenceEffect, Stamp]]:
    """Name what was decided of licences and is not known to have landed: at a start."""
    for key, one in sorted(state.licences.items()):
        namespace, _, name = key.partition("/")
        if one.confirmed >= one.stamp:
            continue
        place = VmiId(namespace, "", "")
        if one.going:
            yield _lane(key), DropLicence(place, name, one.going), one.stamp
        else:
            yield _lane(key), CopyLicence(place, name, one.stamp, one.gpu_class, one.source, one.digest), one.stamp
    yield from _conditions(state, shown=False)


def shown_licences(state: State) -> Iterator[tuple[str, ShowLicence, Stamp]]:
    """Name what was said of classes and is known to have landed: at a look whether it still stands.

    Of a class that nothing is said of, nothing is missing: a log that is lost may have said otherwise.
    """
    yield from _conditions(state, shown=True)
    for name, view in sorted(state.objects["gpuclasses"].items()):
        if name not in state.licence_troubles and isinstance(view, ClassView):
            effect = ShowLicence(NOBODY, name, view.uid, *NOTHING_MISSING, unsaid=True)
            yield _lane(class_key(name)), effect, Stamp()


def _conditions(state: State, *, shown: bool) -> Iterator[tuple[str, ShowLicence, Stamp]]:
    for name, said in sorted(state.licence_troubles.items()):
        if (said.confirmed >= said.stamp) == shown:
            effect = ShowLicence(NOBODY, name, said.uid, said.missing, said.reason, said.message)
            yield _lane(class_key(name)), effect, said.stamp


def _lane(key: str) -> str:
    return f"licence {key}"
