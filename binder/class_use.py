"""Which GPU classes something uses, and whose finalizer is to be put on or taken off: derived from the state (K2).

A class is used while a claim of it is seen, or a set holds one. Where VMIs are not served, a set is as gone as its
pods: nobody will ever see its VMI go (C23).
"""

from binder.indexes import Indexes
from binder.members import Members
from binder.records import ClassGuard
from binder.state import GpuSet, State
from binder.usage import claims_of
from schemas.names import CLASS_FINALIZER
from schemas.objects import AnyView, ClaimView

VMIS = "virtualmachineinstances"


class ClassUse:
    """`users`: claims and sets by class. `due`: classes of which something is to be decided, by name."""

    def __init__(self, state: State, index: Indexes) -> None:
        self._state = state
        self._index = index
        self.users = Members()
        self.due: dict[str, bool] = {}
        self.deleting: dict[str, bool] = {}

    def index_class(self, name: str) -> None:
        """Follow a class that came, changed or went."""
        view = self._state.gpu_class(name)
        if view is not None and view.deleting:
            self.deleting[name] = True
        else:
            self.deleting.pop(name, None)
        self.weigh(name)

    def index_claim(self, key: str, before: AnyView | None, after: AnyView | None) -> None:
        """Follow a claim that came, changed or went."""
        self._move(f"claim {key}", _classes(before), _classes(after))

    def index_set(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        """Follow the claims of a set."""
        self._move(f"set {uid}", _held_classes(before), _held_classes(after))

    def _move(self, member: str, before: dict[str, bool], after: dict[str, bool]) -> None:
        for name in before:
            if name not in after:
                self.users.drop(name, member)
                self.weigh(name)
        for name in after:
            if name not in before:
                self.users.add(name, member)
                self.weigh(name)

    def weigh(self, name: str) -> None:
        """Keep whether something is to be decided of a class: not again before it is seen changed."""
        view, guard = self._state.gpu_class(name), self._state.class_guards.get(name)
        if view is None or (guard is not None and (guard.uid, guard.freed) == (view.uid, view.deleting)):
            due = False
        elif view.deleting:
            due = CLASS_FINALIZER in view.finalizers and not self.is_used(name)
        else:
            due = CLASS_FINALIZER not in view.finalizers
        if due:
            self.due[name] = True
        else:
            self.due.pop(name, None)

    def weigh_leaving(self) -> None:
        """Weigh every class that is being deleted: whether sets count may have changed."""
        for name in self.deleting:
            self.weigh(name)

    def is_used(self, name: str) -> bool:
        """Say whether something uses a class."""
        if not self.users.count(name) or self.are_vmis_served:
            return bool(self.users.count(name))
        return any(self._stands(member) for member in self.users.of(name))

    @property
    def are_vmis_served(self) -> bool:
        """Whether the API server knows VMIs, as far as was heard."""
        session = self._state.sessions.get(VMIS)
        return session is None or session.served

    def _stands(self, member: str) -> bool:
        kind, _, uid = member.partition(" ")
        return kind == "claim" or self._index.pods_by_vmi.count(uid) > 0

    def said(self, name: str, guard: ClassGuard | None) -> None:
        """Remember what was decided of a class, or forget it (None): it was seen changed."""
        if guard is not None:
            self._state.class_guards[name] = guard
        else:
            self._state.class_guards.pop(name, None)
        self.weigh(name)


def _classes(view: AnyView | None) -> dict[str, bool]:
    return {view.class_name: True} if isinstance(view, ClaimView) else {}


def _held_classes(gpu_set: GpuSet | None) -> dict[str, bool]:
    return {claim.class_name: True for claim in claims_of(gpu_set)} if gpu_set is not None else {}
