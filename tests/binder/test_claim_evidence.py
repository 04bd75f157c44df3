"""What is seen of held claims: as evidence of a request, under another uid, with another mark (T14, T15, F1)."""

from msgspec.structs import replace

from schemas.decisions import HeldClaim, HeldFreed, HeldPlaced, VmiAdmitted
from schemas.events import VmiRequest
from schemas.objects import ClaimView, ClassView, NodeView
from schemas.reasons import Placing
from tests.binder.scene import Decisions, Scene

L40S = "nvidia.com/L40S"
CLAIM = ClaimView("mine", "uid-mine", "900", "t", class_name="l40s", count=1)


def a_scene() -> Scene:
    """A class and a node with two units."""
    scene = Scene()
    scene.show(ClassView("l40s", "", "", resource=L40S, mode="Passthrough"))
    scene.show(NodeView("n1", "", "", ready=True, allocatable={L40S: 2}))
    return scene


def ask(scene: Scene, claim: ClaimView) -> Decisions:
    """Put a VMI under review that names the claim as it was read."""
    classes = (ClassView("l40s", "uid-l40s", "1", resource=L40S, mode="Passthrough"),)
    gpus = '[{"claimName":"mine"}]'
    return scene.send(VmiRequest("r", "t", "vm", "kubevirt", gpus, classes=classes, claims=(claim,)))


def test_a_claim_that_no_watch_has_shown_is_believed() -> None:
    """T15: what was read for a request is an observation: the order is bound as if its watch had brought it."""
    answer, *placed = ask(a_scene(), CLAIM)

    assert isinstance(answer, VmiAdmitted)
    assert placed == [HeldPlaced("t", (HeldClaim("mine", "uid-mine", "l40s", 1, L40S),), "n1", Placing.ORDERED)]


def test_a_status_read_for_a_request_places_nothing() -> None:
    """T14: what the claim shows is not where its units are; the binder's own book is."""
    scene = a_scene()

    ask(scene, replace(CLAIM, phase="Bound", node="elsewhere", resource=L40S))

    assert scene.book.state.holdings["t/mine"].node == "n1"


def test_older_evidence_changes_nothing() -> None:
    """T15: the watch has seen the claim's deletion, or its successor: what was read before that is passed over."""
    gone, newer = a_scene(), a_scene()
    for scene in (gone, newer):
        scene.show(replace(CLAIM, rv=""))
    gone.remove("gpuclaims", "t/mine")
    newer.show(replace(CLAIM, uid="uid-other", rv=""))

    ask(gone, replace(CLAIM, rv="1"))
    ask(newer, replace(CLAIM, rv="1"))

    assert gone.book.state.holdings == {}
    assert newer.book.state.holdings["t/mine"].claim.uid == "uid-other"


def test_one_that_is_missing_is_missing_for_that_request_alone() -> None:
    """T15: "not found" removes nothing: the watch says when a claim is gone."""
    scene = a_scene()
    scene.show(replace(CLAIM, rv=""))

    scene.send(VmiRequest("r", "t", "vm", "kubevirt", '[{"claimName":"mine"}]', missing_claims=("mine",)))

    assert scene.book.state.holdings["t/mine"].node == "n1"


def test_a_claim_made_again_before_its_deletion_was_seen_is_another_order() -> None:
    """N3: the watch shows the next claim of the name where the old one was: it is served as any new one is."""
    scene = a_scene()
    scene.show(replace(CLAIM, rv=""))

    decided = scene.show(replace(CLAIM, uid="uid-other", rv=""))

    assert decided == (HeldPlaced("t", (HeldClaim("mine", "uid-other", "l40s", 1, L40S),), "n1", Placing.ORDERED),)


def test_a_claim_stays_what_it_was_made_as() -> None:
    """F1, T14: a label on a held claim makes it no template claim: it is not dropped, and let go when it is deleted."""
    scene = a_scene()
    scene.show(replace(CLAIM, rv=""))

    marked = scene.show(replace(CLAIM, rv="", template=True))
    assert marked == ()
    assert scene.book.state.holdings["t/mine"].node == "n1"
    going = scene.show(replace(CLAIM, rv="", template=True, deleting=True))

    assert going == (HeldFreed("t", "mine", "uid-mine"),)


def test_a_template_claim_without_its_mark_is_no_order() -> None:
    """T14: a claim of a set, stripped of its label, gets no units beside those of its set."""
    scene = a_scene()
    scene.show(replace(CLAIM, rv="", template=True))

    assert scene.show(replace(CLAIM, rv="", template=False)) == ()
    assert scene.book.state.holdings == {}


def test_a_placed_claim_counts_as_decided_before_its_status_says_so() -> None:
    """T24: its class is edited before its status is written: the launcher asks for what it was decided under."""
    scene = a_scene()
    scene.show(replace(CLAIM, rv=""))
    edited = scene.newer(ClassView("l40s", "uid-l40s", "", resource="nvidia.com/NEW", mode="Passthrough"))
    scene.watch("gpuclasses", [edited])

    answer, *_ = scene.send(
        VmiRequest("r", "t", "vm", "kubevirt", '[{"claimName":"mine"}]', classes=(edited,), claims=(CLAIM,))
    )

    assert isinstance(answer, VmiAdmitted)
    assert [entry.resource for entry in answer.entries] == [L40S]
