"""Pins: one conditional write that a touched pod takes, a changed one refuses, and that may be repeated (T21)."""

import pytest

from schemas.kinds import POD
from schemas.names import GATE
from schemas.objects import NodeSelectorTerm, Requirement
from tests.projector.scene import (
    FOREIGN_GATE,
    MODEL,
    NODE,
    PINNED,
    ZONE,
    Obj,
    Scene,
    gates,
    stamp,
    success,
    terms_json,
)

ALONE = [{"matchFields": [PINNED]}]
PREFERRED = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    ]
}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
        ]
    }
}


async def test_every_term_is_pinned(scene: Scene) -> None:
    """D3, C18: terms are ORed, so the node's name is ANDed into each, and the gate goes in the same write."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([ZONE, MODEL]))

    outcomes = await scene.project(scene.placed(vmi, pod, terms=[ZONE, MODEL]))

    before = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert await scene.terms() == [term | {"matchFields": [PINNED]} for term in before["nodeSelectorTerms"]]
    assert gates(await scene.get(POD, "virt-launcher-a")) == []
    assert success(outcomes)
    assert outcomes[0].stamp == stamp(10)
    assert outcomes[0].vmi_uid == vmi.uid


@pytest.mark.parametrize(
    "affinity",
    [None, {}, {"nodeAffinity": PREFERRED}, APART, APART | {"nodeAffinity": PREFERRED}],
    ids=["none", "empty", "preferred", "apart", "apart-and-preferred"],
)
async def test_a_pod_that_requires_nothing_is_pinned(scene: Scene, affinity: Obj | None) -> None:
    """A first term is added beside whatever else the affinity holds."""
    vmi, pod = await scene.vmi(), await scene.launcher(affinity)

    outcomes = await scene.project(scene.placed(vmi, pod))

    spec = (await scene.get(POD, "virt-launcher-a"))["spec"]
    assert await scene.terms() == ALONE
    assert spec["affinity"].get("podAntiAffinity") == (affinity or {}).get("podAntiAffinity")
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    assert spec["affinity"]["nodeAffinity"].get(preferred) == (affinity or {}).get("nodeAffinity", {}).get(preferred)
    assert success(outcomes)


async def test_an_empty_term_stays_empty(scene: Scene) -> None:
    """A term that matches no node must not begin to match one; the API server would refuse it."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([NodeSelectorTerm(), ZONE]))

    outcomes = await scene.project(scene.placed(vmi, pod, terms=[NodeSelectorTerm(), ZONE]))

    assert [term.get("matchFields") for term in await scene.terms()] == [None, [PINNED]]
    assert success(outcomes)


async def test_a_pin_beside_another_field_requirement_keeps_it(scene: Scene) -> None:
    """Requirements on fields that stand there already are kept; our own is not written twice."""
    ours = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (NODE,)),))
    others = NodeSelectorTerm(match_fields=(Requirement("metadata.name", "NotIn", ("n2",)),))
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([ours, others]))

    outcomes = await scene.project(scene.placed(vmi, pod, terms=[ours, others]))

    assert [len(term["matchFields"]) for term in await scene.terms()] == [1, 2]
    assert success(outcomes)


async def test_a_touched_pod_is_pinned_all_the_same(scene: Scene) -> None:
    """T21: virt-controller's labels and conditions between sight and pin are no reason not to pin."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([ZONE]))
    touched = {"type": "kubevirt.io/virtual-machine-unpaused", "status": "True"}
    await scene.patch(POD, "virt-launcher-a", {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}})
    await scene.patch(POD, "virt-launcher-a", {"status": {"conditions": [touched]}}, "status")

    outcomes = await scene.project(scene.placed(vmi, pod, terms=[ZONE]))

    assert gates(await scene.get(POD, "virt-launcher-a")) == []
    assert success(outcomes)


@pytest.mark.parametrize("terms", [(), (ZONE, MODEL)], ids=["none", "some"])
async def test_a_repeated_pin_is_a_success(scene: Scene, terms: tuple[NodeSelectorTerm, ...]) -> None:
    """T21: the pin that landed before a crash is found, not taken for refused, and nothing is written."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json(terms) if terms else None)
    gpu_set = scene.placed(vmi, pod, terms=terms)
    await scene.project(gpu_set)
    pod, claim = await scene.get(POD, "virt-launcher-a"), await scene.claim(vmi)

    outcomes = await scene.project(gpu_set)

    after = await scene.get(POD, "virt-launcher-a")
    # Of an ungated pod the scheduler writes the status; the generation counts changes of the rest.
    assert (after["spec"], after["metadata"]["generation"]) == (pod["spec"], pod["metadata"]["generation"])
    assert await scene.claim(vmi) == claim
    assert success(outcomes)


@pytest.mark.parametrize("terms", [(), (ZONE,)], ids=["none", "some"])
async def test_a_foreign_gate_is_left_alone(scene: Scene, terms: tuple[NodeSelectorTerm, ...]) -> None:
    """C56: beside another's gate nothing is pinned and no gate removed; the binder hears of it."""
    affinity = terms_json(terms) if terms else None
    vmi, pod = await scene.vmi(), await scene.launcher(affinity, [FOREIGN_GATE, GATE])

    outcomes = await scene.project(scene.placed(vmi, pod, terms=terms))

    after = await scene.get(POD, "virt-launcher-a")
    assert gates(after) == [FOREIGN_GATE, GATE]
    assert after["spec"].get("affinity") == pod["spec"].get("affinity")
    assert [(one.action, one.code, one.reason) for one in outcomes] == [("pin", 409, "GateChanged")]


@pytest.mark.parametrize("seen", [(), (ZONE,)], ids=["none", "some"])
async def test_changed_affinity_is_reported(scene: Scene, seen: tuple[NodeSelectorTerm, ...]) -> None:
    """T21: a pod whose affinity is no longer the one decided on is not pinned; the binder decides anew."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([ZONE, MODEL]))

    outcomes = await scene.project(scene.placed(vmi, pod, terms=seen))

    assert await scene.get(POD, "virt-launcher-a") == pod
    assert [(one.action, one.name, one.code, one.reason) for one in outcomes] == [
        ("pin", "virt-launcher-a", 409, "AffinityChanged")
    ]
    assert outcomes[0].stamp == stamp(10)


@pytest.mark.parametrize("terms", [(), (ZONE,)], ids=["none", "some"])
async def test_a_pod_that_is_gone_settles_the_pin(scene: Scene, terms: tuple[NodeSelectorTerm, ...]) -> None:
    """A launcher that is gone can't be pinned and need not be: no refusal, no repeat."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json(terms) if terms else None)
    await scene.kube.delete(POD, scene.namespace, "virt-launcher-a", grace_seconds=0)

    outcomes = await scene.project(scene.placed(vmi, pod, terms=terms))

    assert success(outcomes)


@pytest.mark.parametrize("terms", [(), (ZONE,)], ids=["none", "some"])
async def test_another_pod_of_that_name_is_not_touched(scene: Scene, terms: tuple[NodeSelectorTerm, ...]) -> None:
    """T25: a pin is for one uid; the next pod of the same name stays as it is."""
    affinity = terms_json(terms) if terms else None
    vmi, pod = await scene.vmi(), await scene.launcher(affinity)
    await scene.kube.delete(POD, scene.namespace, "virt-launcher-a", grace_seconds=0)
    other = await scene.launcher(affinity)

    outcomes = await scene.project(scene.placed(vmi, pod, terms=terms))

    assert await scene.get(POD, "virt-launcher-a") == other
    assert success(outcomes)


@pytest.mark.parametrize("seen", [(), (MODEL,)], ids=["none", "others"])
async def test_a_pod_that_is_going_settles_the_pin(scene: Scene, seen: tuple[NodeSelectorTerm, ...]) -> None:
    """A launcher that somebody deleted is not pinned, and whatever else changed about it is no refusal."""
    vmi, pod = await scene.vmi(), await scene.launcher(terms_json([ZONE]))
    await scene.patch(POD, "virt-launcher-a", {"metadata": {"finalizers": ["example.org/slow"]}})
    await scene.kube.delete(POD, scene.namespace, "virt-launcher-a", grace_seconds=0)

    outcomes = await scene.project(scene.placed(vmi, pod, terms=seen))

    after = await scene.get(POD, "virt-launcher-a")
    await scene.patch(POD, "virt-launcher-a", {"metadata": {"finalizers": None}})
    assert gates(after) == [GATE]
    assert success(outcomes)
