"""Starts booked at admission, found fast: a VM's sets over its VMIs, and those whose VMI was not seen yet (T18)."""

from binder.members import Members
from binder.skips import START_NS
from binder.state import GpuSet, Session, State


class Starts:
    """`by_vm`: uids of the sets of a VM (namespace/name). `unseen`: uids of sets whose VMI was not seen yet."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.by_vm = Members()
        self.unseen: dict[str, bool] = {}

    def index_set(self, uid: str, before: GpuSet | None, after: GpuSet | None) -> None:
        """Follow a set that came, changed or went."""
        if before is None and after is not None:
            self.by_vm.add(_vm(after), uid)
        elif before is not None and after is None:
            self.by_vm.drop(_vm(before), uid)
        if after is not None and after.start is not None:
            self.unseen[uid] = True
        else:
            self.unseen.pop(uid, None)

    def overdue(self, session: Session) -> list[str]:
        """Return the sets whose VMI should have come by now, and that the watch was heard of since then."""
        if not self.unseen:
            # This is asked at every change of a VMI.
            return []
        return [uid for uid in sorted(self.unseen) if is_overdue(self._state.sets[uid], session)]

    def rivals(self, key: str, uid: str) -> list[GpuSet]:
        """Return the sets of a VM that belong to other VMIs of its name, by uid."""
        return [self._state.sets[other] for other in sorted(self.by_vm.of(key)) if other != uid]

    def dues(self) -> list[tuple[int, str]]:
        """Return when requests that nobody decided are forgotten."""
        return [(asked.at_ns + START_NS, uid) for uid, asked in self._state.asked.items()]


def is_overdue(gpu_set: GpuSet, session: Session | None) -> bool:
    """Say whether a VMI can't come any more: its time is over, and the watch went on beyond that and never saw it."""
    start = gpu_set.start
    return start is not None and session is not None and 0 < start.due < session.progress


def _vm(gpu_set: GpuSet) -> str:
    return f"{gpu_set.vmi.namespace}/{gpu_set.vmi.name}"
