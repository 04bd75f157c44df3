"""Random histories whose log is lost at a random moment: every promise holds on, and who ran keeps what it had (T4)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binder.adopting import let_go, vmis
from binder.book import Book
from binder.evolve import is_dirty
from binder.following import place_of
from schemas.events import Continue
from schemas.names import GATE
from schemas.objects import PodView
from tests.binder.histories import Act, History
from tests.binder.oracle import untold
from tests.binder.scene import Scene

NUMBERS = st.integers(0, 999)
ACTS: st.SearchStrategy[list[Act]] = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=50)
OFTEN = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def running(book: Book) -> dict[str, str]:
    """Return the pods that were let go and that a booking counts, by uid, with their nodes."""
    found: dict[str, str] = {}
    for vmi in vmis(book):
        pod, gpu_set = let_go(book, vmi), book.state.sets.get(vmi.uid)
        if pod is not None and gpu_set is not None and gpu_set.pod_uid == pod.uid and gpu_set.pinned:
            found[pod.uid] = place_of(pod)
    return found


def holding(book: Book) -> dict[str, str]:
    """Return all pods that hold units: those that a booking counts, and those that count by themselves."""
    booked = {one.pod_uid: one.node for one in book.state.sets.values() if one.node}
    pods = [book.state.pod(key) for key in book.usage.shares["pods"]]
    return booked | {pod.uid: pod.node for pod in pods if isinstance(pod, PodView)}


@OFTEN
@given(ACTS, ACTS)
def test_whatever_came_before_what_runs_is_booked_and_life_goes_on(before: list[Act], after: list[Act]) -> None:
    """T4: at any moment a new generation books who runs where it runs; then every law holds of what it decides."""
    history = History(Scene())
    history.begin()
    for act in before:
        history.do(act)
    history.rest()
    ran = running(history.scene.book)

    history.scene.adopt()
    history.rest()
    while history.scene.book.state.adopting:
        history.scene.send(Continue())
    history.scene.settled()

    now = holding(history.scene.book)
    assert {uid: now.get(uid) for uid in ran} == ran
    gated = {pod.uid for pod in history.scene.book.state.objects["pods"].values() if GATE in getattr(pod, "gates", ())}
    adopted = {one.pod_uid for one in history.scene.book.state.sets.values() if one.node and one.pinned}
    assert not gated & adopted
    for act in after:
        history.do(act)
    history.rest()
    assert not is_dirty(history.scene.book.state)
    assert not untold(history.scene.book.state)
