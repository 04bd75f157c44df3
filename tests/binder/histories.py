"""Random histories of a small cluster, told by numbers: what Hypothesis draws, or a seed.

Each act is five numbers; what they mean depends on what stands. `python -m tests.binder.histories SEED LENGTH`
prints the digest of one.
"""

import hashlib
import random
import sys
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from binder.evolve import is_dirty, may_place
from binder.snapshot import state_digest
from schemas.objects import AnyView, TenantView
from tests.binder.laws_starts import undecided
from tests.binder.oracle import untold
from tests.binder.oracle_kept import starved, unfinalized
from tests.binder.scene import Scene
from tests.binder.write_acts import WriteActs

Act = tuple[int, int, int, int, int]


class History(WriteActs):
    """Acts on a scene."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.acts: tuple[Callable[[int, int, int, int], object], ...] = (
            self._node, self._node, self._node_gone, self._gpu_class, self._gpu_class, self._class_gone,
            self._start, self._start, self._start, self._start, self._start, self._vmi, self._vmi_phase,
            self._vmi_gone, self._vm, self._admit, self._stranger, self._listed, self._listed, self._bind,
            self._bind, self._stuck, self._end, self._refused, self._pod_gone, self._pod_gone, self._repin,
            self._raw_pod, self._volume, self._bound_volume, self._settings, self._tick, self._tick,
            self._progress,
            self._progress, self._epoch, self._session, self._relist, self._stale, self._outcome, self._outcome,
            self._malformed, self._claim, self._claim_gone, self._evidence, self._missed, self._long,
            self._order, self._order, self._order, self._order_ends, self._claim_shown, self._names_claims,
            self._names_claims, self._uses_claims, self._uses_claims, self._uses_claims,
            self._trouble, self._trouble, self._trouble, self._runs, self._by_hand,
            self._budget, self._budget_gone, self._release, self._release_gone,
            self._scaled, self._scaled_gone, self._owned, self._owned, self._asks, self._asks,
        )  # fmt: skip

    def begin(self) -> None:
        """Let there be nodes and classes with which something can be placed."""
        for setting in ((3, 2, 4, 0), (2, 2, 3, 1)):
            self._node(*setting)
        for number in range(3):
            self._gpu_class(number, 0, 1, 0)

    def do(self, act: Act) -> None:
        """Let one thing happen."""
        self.count += 1
        which, *numbers = act
        self.acts[which % len(self.acts)](numbers[0], numbers[1], numbers[2], numbers[3])

    def rest(self) -> None:
        """Let every kind be listed and every watch progress, until nothing is left to say."""
        for kind in self.scene.objects:
            session = self.scene.book.state.sessions.get(kind)
            if session is None or not session.synced:
                self.scene.relist(kind)
        self.scene.progress()
        self.scene.settled()


def seeded(seed: int, length: int) -> list[Act]:
    """Return the acts of a seed."""
    chance = random.Random(seed)
    return [tuple(chance.randrange(10_000) for _ in range(5)) for _ in range(length)]  # type: ignore[misc]  # five


def lived(acts: Sequence[Act], *, lawful: bool = True, kind: type[History] = History) -> History:
    """Live through acts, from a cluster in which something can be placed, until nothing is left to say."""
    history = kind(Scene(lawful=lawful))
    history.begin()
    for act in acts:
        history.do(act)
        state = history.scene.book.state
        if lawful and may_place(state) and not is_dirty(state):
            assert not untold(state)
            assert not starved(state)
            assert not unfinalized(state)
            assert not undecided(state)
    history.rest()
    if lawful:
        assert not unlike(history.scene)
    return history


def unlike(scene: Scene) -> list[str]:
    """Return where the binder's picture differs from the cluster once every kind is listed and nothing is on its way.

    Classes are left out: evidence brings versions that the cluster of these histories never had. Of quotas that
    can't be read the picture holds what was last known.
    """
    return [
        f"{kind}: {key}"
        for kind, table in sorted(scene.objects.items())
        if kind != "gpuclasses"
        for key in sorted({*table, *scene.book.state.objects[kind]})
        if _as_seen(table.get(key)) != _as_seen(scene.book.state.objects[kind].get(key))
    ]


def _as_seen(view: AnyView | None) -> AnyView | None:
    if isinstance(view, TenantView) and (view.unread or view.opaque):
        return replace(view, hard={}, unread=())
    return view


def digest(history: History) -> str:
    """Return a digest over everything decided and the state at the end."""
    told = hashlib.sha256()
    for sequence, _, _, decided in history.scene.log:
        told.update(f"{sequence} {decided}\n".encode())
    return f"{told.hexdigest()} {state_digest(history.scene.book.state)}"


if __name__ == "__main__":
    sys.stdout.write(digest(lived(seeded(int(sys.argv[1]), int(sys.argv[2])), lawful=False)) + "\n")
