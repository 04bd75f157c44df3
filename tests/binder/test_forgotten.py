"""A launcher that an old backup brings back, of which nobody knows the admission any more: said, with the remedy."""

from msgspec.structs import replace

from binder.explain import explain
from schemas import decisions as d
from schemas.objects import VmiView
from schemas.reasons import Wait
from tests.binder.scene import Scene, launcher
from tests.binder.test_heart_bounds import RESOURCE, a_scene, a_vmi

PODS, VMIS = "pods", "virtualmachineinstances"
STEP_S, STEPS = 30, 25
"""Logical time takes no longer steps (T9); ten minutes and some are over after these."""


def gated(scene: Scene) -> tuple[VmiView, str]:
    """Show a VM whose launcher waits at our gate, admitted, and return it with its pod's key."""
    vmi = a_vmi(scene, "vm")
    scene.admit(vmi, "r")
    pod = launcher(vmi, "p", "r", {RESOURCE: 1})
    scene.show(pod)
    scene.show(replace(vmi, active_pods={pod.uid: ""}))
    return replace(vmi, active_pods={pod.uid: ""}), pod.key


def test_t12_a_launcher_whose_admission_is_forgotten_hears_what_to_do() -> None:
    """T12, T25: an old backup brings VMI and launcher back: no unit is given, the reason says restart; that helps."""
    scene = a_scene(units=0)
    vmi, key = gated(scene)
    pod = scene.objects[PODS][key]
    scene.remove(PODS, key)
    scene.remove(VMIS, vmi.key)
    for _ in range(STEPS):
        scene.tick(STEP_S)

    for back in (pod, vmi):
        scene.objects[PODS if back is pod else VMIS][back.key] = back
    said = (*scene.relist(PODS, rewound=True), *scene.relist(VMIS, rewound=True))

    [waits] = [one for one in said if isinstance(one, d.SetWaits)]
    assert waits.reason is Wait.NO_LAUNCHER
    assert "restart the VM, or delete that pod" in waits.message
    told = explain(scene.book, vmi.namespace, vmi.name)
    assert (told.reason, told.summary) == (Wait.NO_LAUNCHER, waits.message)

    # Restarted: KubeVirt makes another launcher, which is asked about.
    scene.remove(PODS, key)
    scene.admit(vmi, "r2")
    anew = launcher(vmi, "p2", "r2", {RESOURCE: 1})
    scene.show(anew)
    opened = scene.show(replace(vmi, active_pods={anew.uid: ""}))
    assert any(isinstance(one, d.SetOpened) for one in opened)
