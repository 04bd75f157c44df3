"""The licence of a VMI's vGPU class: which Secret its guest gets as a disk, told apart from forgeries (L5)."""

from collections.abc import Iterable

from binder.rules.gpu_sets import Asked
from schemas.licences import copy_name, is_licensed

VOLUME, DISK = "volume", "disk"
FOREIGN = "?"


def licence_copy_for(asked: Iterable[Asked]) -> str:
    """Return the name of the copy that the VMI's guest gets, '' where none of its classes needs a licence.

    One VM has one vGPU class (A4), so there is one licence at most, that of a held claim's class too.
    """
    views = [one.view for one in asked if one.view is not None and is_licensed(one.view)]
    return copy_name(views[0].name) if views else ""


def licence_marks(secret: str) -> tuple[str, ...]:
    """Spell what we write for a licence, as `VmiRequest.bound_licence` spells what is found under our name."""
    return (f"{VOLUME}={secret}", f"{DISK}={secret}") if secret else ()
