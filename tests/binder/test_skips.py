"""Skipped nodes: what an operator is told of them, and how long they are remembered (D7)."""

from msgspec.structs import replace

from binder.explain import explain
from schemas.names import CLASS_FINALIZER
from schemas.objects import ClassView, NodeView, PodView, VmiView
from schemas.reasons import Wait
from tests.binder.scene import Decisions, Scene, launcher

RESOURCE = "nvidia.com/A"
NODE = NodeView("n1", "", "", ready=True, allocatable={RESOURCE: 2, "cpu": 8000})


def _scene() -> Scene:
    scene = Scene()
    scene.show(ClassView("a", "", "", resource=RESOURCE, finalizers=(CLASS_FINALIZER,)))
    scene.show(NODE)
    return scene


def _start(scene: Scene, uid: str) -> Decisions:
    vmi = VmiView("vm", uid, "", "t", gpus='[{"className":"a","count":1}]')
    scene.show(vmi)
    scene.admit(vmi, f"r-{uid}")
    pod = launcher(vmi, f"pod-{uid}", f"r-{uid}", {RESOURCE: 1, "cpu": 1000})
    scene.show(pod)
    return scene.show(replace(vmi, active_pods={pod.uid: ""}))


def _refuse(scene: Scene, uid: str) -> None:
    pod = scene.objects["pods"][f"t/pod-{uid}"]
    assert isinstance(pod, PodView)
    scene.show(replace(pod, gates=(), node="n1"))
    scene.show(replace(pod, gates=(), node="n1", phase="Failed", ended=True, reason="OutOfcpu"))
    scene.remove("pods", pod.key)
    scene.remove("virtualmachineinstances", "t/vm")


def test_explain_says_what_the_node_did_and_for_how_long_it_is_skipped() -> None:
    """D7: the verdict on a skipped node names the cause, how often in a row, and the time that is left."""
    scene = _scene()
    _start(scene, "u1")
    _refuse(scene, "u1")
    scene.tick(10)
    _start(scene, "u2")

    (verdict,) = explain(scene.book, "t", "vm").nodes
    assert verdict.reason is Wait.NODE_SKIPPED
    told = "did not take this VM (NodeRefused, 1 in a row): skipped"
    assert verdict.detail == f"{told} until it changes, for 590 s at most"

    # The second one in a row: a change has to wait.
    scene.show(replace(NODE, allocatable={RESOURCE: 1, "cpu": 8000}))
    _refuse(scene, "u2")
    _start(scene, "u3")
    scene.show(NODE)
    (verdict,) = explain(scene.book, "t", "vm").nodes
    assert verdict.detail == "did not take this VM (NodeRefused, 2 in a row): skipped for 60 s more"


def test_refusals_are_forgotten_after_an_hour() -> None:
    """D7: what is remembered of a VM's refusals is bounded in time, and a forgotten one leaves nothing."""
    scene = _scene()
    _start(scene, "u1")
    _refuse(scene, "u1")
    for _ in range(179):
        scene.tick(20)
    assert scene.book.state.skips

    scene.tick(20)

    assert not scene.book.state.skips
    assert not scene.book.skips.due
