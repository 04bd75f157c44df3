"""Which namespaces are to have which licence: the wants, and whether they may be decided on now (pure; L1-L3)."""

from binder.state import State, is_current
from schemas import decisions as d
from schemas.licences import COPIES, SOURCES, copy_name, is_licensed
from schemas.names import LICENCE_PREFIX, LICENCE_TOKEN_KEY
from schemas.objects import ClassView, NamespaceView, SecretView
from schemas.reasons import Licence

LICENCE_DECISIONS = (d.LicenceCopied, d.LicenceDropped, d.LicenceBlocked, d.LicenceMissing)
LicenceDecision = d.LicenceCopied | d.LicenceDropped | d.LicenceBlocked | d.LicenceMissing

ACTION_COPY = "copy-licence"
ACTION_DROP = "drop-licence"
ACTION_SHOW = "show-licence"
LICENCE_ACTIONS = (ACTION_COPY, ACTION_DROP, ACTION_SHOW)
"""How outcomes name the writes: of a copy by namespace and name, of a class's condition by name alone."""

NAME_TAKEN = "NameTaken"
NEEDED_FOR_LICENCES = ("gpuclasses", "namespaces", SOURCES, COPIES)


def may_license(state: State) -> bool:
    """Say whether the picture is whole and new: a copy is not dropped because its class was not listed yet (T11)."""
    return all(is_current(state, kind) for kind in NEEDED_FOR_LICENCES)


def licences_due(state: State) -> bool:
    """Say whether a copy or a class is to be looked at, and may be: whatever placing waits for."""
    return bool(state.dirty_licences) and may_license(state)


def class_key(name: str) -> str:
    """Return how `State.dirty_licences` names a class, beside the copies, which begin with a namespace."""
    return f"/{name}"


def licence_key(decision: LicenceDecision) -> str:
    """Return what a decision is about, as `State.dirty_licences` names it."""
    if isinstance(decision, d.LicenceMissing):
        return class_key(decision.name)
    return f"{decision.namespace}/{decision.name}"


def is_entitled(namespace: NamespaceView | None) -> bool:
    """Say whether a namespace is to have copies: by its label, and not while it goes (L2, C52)."""
    return namespace is not None and namespace.vgpu and not namespace.deleting


def classes_by_copy(state: State) -> dict[str, ClassView]:
    """Return the classes that need a licence by the name of their copies; of two with one name the first."""
    found: dict[str, ClassView] = {}
    for name, view in sorted(state.objects["gpuclasses"].items()):
        if isinstance(view, ClassView) and is_licensed(view):
            found.setdefault(copy_name(name), view)
    return found


def is_ours(copy: SecretView) -> bool:
    """Say whether a Secret is exactly what we wrote: by name, label and content (C31)."""
    return copy.intact and copy.name == LICENCE_PREFIX + copy.gpu_class


def source_trouble(source: SecretView | None) -> Licence:
    """Return what is wrong with a licence's source (L3)."""
    if source is None or source.deleting:
        return Licence.NO_SOURCE
    return Licence.FOUND if LICENCE_TOKEN_KEY in source.keys else Licence.NO_KEY


def licence_source(state: State, name: str) -> SecretView | None:
    """Return the Secret of that name that licences are copied from, of whichever namespace is watched for them."""
    found = [view for _, view in sorted(state.objects[SOURCES].items()) if view.name == name]
    return found[0] if found and isinstance(found[0], SecretView) else None


def licence_copy(state: State, key: str) -> SecretView | None:
    """Return the observed Secret `namespace/name` with our label."""
    found = state.objects[COPIES].get(key)
    return found if isinstance(found, SecretView) else None
