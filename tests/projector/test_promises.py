"""What the projector promises, on the model API server and on a real one alike."""

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from binder.book import Book
from binder.state import empty_state
from projector.counts import ClassCounts
from schemas.decisions import ClaimDropped
from schemas.events import Outcome
from schemas.kinds import GPU_CLAIM, GPU_CLASS, NAMESPACE, POD
from schemas.names import GATE
from schemas.objects import ClassView, NodeSelectorTerm, NodeView, Requirement
from schemas.reasons import Release, Wait
from tests.cluster.given import Cluster
from tests.projector.conftest import new_scene, real_scene
from tests.projector.scene import FOREIGN_GATE, MODEL, NODE, PINNED, RESOURCE, ZONE, Obj, Scene, stamp, terms_json

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


SERVER = pytest.param("server", marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")])


@pytest.fixture(params=["model", SERVER])
def cluster_or_none(request: pytest.FixtureRequest) -> Cluster | None:
    """A cluster for the real client, None for the model."""
    found: Cluster | None = request.getfixturevalue("cluster") if request.param == "server" else None
    return found


@pytest_asyncio.fixture
async def scene(cluster_or_none: Cluster | None) -> AsyncIterator[Scene]:
    """A namespace on either."""
    if cluster_or_none is None:
        yield await new_scene()
    else:
        async with real_scene(cluster_or_none) as found:
            yield found


def success(outcomes: list[Outcome]) -> bool:
    """Whether one set, and nothing else, was reported as written."""
    return [(outcome.action, outcome.code) for outcome in outcomes] == [("set", 0)]


def gates(pod: Obj) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


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


async def test_claims_say_whose_they_are_and_where(scene: Scene) -> None:
    """N3, N4, T24: a template claim is owned by its VMI, marked, and its status tells node, resource and stamp."""
    vmi, pod = await scene.vmi(), await scene.launcher()

    await scene.project(scene.placed(vmi, pod, units=[2, 1]))

    claim, second = await scene.claim(vmi), await scene.claim(vmi, 1)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": vmi.name,
        "uid": vmi.uid,
        "blockOwnerDeletion": False,
    }
    assert claim["metadata"]["labels"] == {
        "cozystack.io/gpu-template-claim": "true",
        "cozystack.io/gpu-class": "l40s",
        "app.kubernetes.io/managed-by": "gpubinder",
    }
    assert [claim["spec"], second["spec"]["count"]] == [{"className": "l40s", "count": 2}, 1]
    assert claim["status"] == {
        "phase": "Bound",
        "nodeName": NODE,
        "resourceName": RESOURCE,
        "attachedTo": {"name": vmi.name, "uid": vmi.uid},
        "stamp": {"generation": 1, "sequence": 10, "entry": 0},
        "conditions": [
            {
                "type": "Placed",
                "status": "True",
                "reason": "Placed",
                "message": f"all units of the set are on node {NODE}",
                "lastTransitionTime": "2026-05-03T10:00:00Z",
                "observedGeneration": 1,
            }
        ],
    }


async def test_a_waiting_set_says_why(scene: Scene) -> None:
    """D5: the claims carry the reason as a condition, and one Warning event on the VMI says it too."""
    vmi = await scene.vmi()

    outcomes = await scene.project(scene.waiting(vmi))

    status, (event,) = (await scene.claim(vmi))["status"], await scene.events()
    assert (status["phase"], status.get("nodeName"), status["attachedTo"]["uid"]) == ("Pending", None, vmi.uid)
    assert [(one["status"], one["reason"], one["message"]) for one in status["conditions"]] == [
        ("False", "NoRoom", "no node has room")
    ]
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "NoRoom", "no node has room")
    assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("VirtualMachineInstance", vmi.uid)
    assert success(outcomes)


async def test_each_change_of_reason_is_one_event(scene: Scene) -> None:
    """C59: A, B and A again are three events; the same decision again, by a new projector, is none."""
    vmi = await scene.vmi()
    told = [
        scene.waiting(vmi, Wait.NO_ROOM, at=10),
        scene.waiting(vmi, Wait.VOLUME_ELSEWHERE, at=11),
        scene.waiting(vmi, Wait.NO_ROOM, at=12),
    ]
    for one in (told[0], told[0], told[1], told[2], told[2]):
        await scene.project(one)
    claim = await scene.claim(vmi)

    await scene.project(told[2])

    assert sorted(event["reason"] for event in await scene.events()) == ["NoRoom", "NoRoom", "VolumeOnOtherNode"]
    assert await scene.claim(vmi) == claim


async def test_a_reason_already_told_is_not_told_with_the_next_decision(scene: Scene) -> None:
    """C59: claims said again while a set waits, or anything else decided of it, make no second event."""
    vmi = await scene.vmi()
    gpu_set = scene.waiting(vmi)
    await scene.project(gpu_set)

    await scene.project(replace(gpu_set, confirmed=stamp(10), stamp=stamp(11)))

    assert len(await scene.events()) == 1
    assert (await scene.claim(vmi))["status"]["stamp"]["sequence"] == 11


async def test_a_condition_tells_since_when(scene: Scene) -> None:
    """The condition's time is that of the last change from waiting to placed or back, not of the reason."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    times = []
    for gpu_set in (
        scene.waiting(vmi, Wait.NO_ROOM, at=10),
        scene.waiting(vmi, Wait.NODE_NOT_READY, at=11),
        scene.placed(vmi, pod, at=12),
        replace(scene.placed(vmi, pod, at=12), stamp=stamp(13), node="", released=Release.LAUNCHER_ENDED),
    ):
        scene.clock += timedelta(minutes=1)
        await scene.project(gpu_set)
        (condition,) = (await scene.claim(vmi))["status"]["conditions"]
        times.append((condition["reason"], condition["lastTransitionTime"][14:16]))

    assert times == [("NoRoom", "01"), ("NodeNotReady", "01"), ("Placed", "03"), ("LauncherEnded", "04")]


async def test_a_stale_writer_pins_nothing(scene: Scene) -> None:
    """T22, C20: who is behind the log finds a newer stamp, writes no status, pins nothing and reports nothing."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    await scene.project(scene.waiting(vmi, at=20))
    claim = await scene.claim(vmi)

    outcomes = await scene.project(scene.placed(vmi, pod, at=19))

    assert outcomes == []
    assert await scene.claim(vmi) == claim
    assert gates(await scene.get(POD, "virt-launcher-a")) == [GATE]


async def test_a_writer_overtaken_while_it_works_pins_nothing(scene: Scene) -> None:
    """T22: a projector that knows the claim from before is stopped by the API server's own rule."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    async with scene.projector() as old:
        scene.decide(old, scene.waiting(vmi, at=10))
        await old.idle()
        await scene.project(scene.waiting(vmi, Wait.PAUSED, at=30))
        claim = await scene.claim(vmi)

        scene.decide(old, scene.placed(vmi, pod, at=20))
        await old.idle()

    assert await scene.claim(vmi) == claim
    assert gates(await scene.get(POD, "virt-launcher-a")) == [GATE]


async def test_a_vm_that_comes_back_has_claims_of_its_own(scene: Scene) -> None:
    """N3: the next VMI of the same name makes its claims beside the old one's, which still stand."""
    first = await scene.vmi()
    await scene.project(scene.waiting(first))
    old = await scene.claim(first)
    await scene.patch(GPU_CLAIM, old["metadata"]["name"], {"metadata": {"finalizers": ["example.org/slow"]}})
    await scene.delete_vmi(first)
    second = await scene.vmi()

    outcomes = await scene.project(scene.waiting(second, at=11))

    assert (await scene.claim(second))["status"]["attachedTo"]["uid"] == second.uid
    assert (await scene.claim(first))["status"]["attachedTo"]["uid"] == first.uid
    assert success(outcomes)
    await scene.patch(GPU_CLAIM, old["metadata"]["name"], {"metadata": {"finalizers": None}})


async def test_a_name_that_is_taken_is_reported(scene: Scene) -> None:
    """A claim of that name that the VMI does not own is left alone; the refusal names the field, no value (T16)."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    name = scene.claims(vmi, [2])[0].name
    other = await scene.create(GPU_CLAIM, {"metadata": {"name": name}, "spec": {"className": "l40s", "count": 2}})

    outcomes = await scene.project(scene.placed(vmi, pod))

    assert [(one.action, one.name, one.code, one.reason, one.field) for one in outcomes] == [
        ("claim", name, 409, "NameTaken", "metadata.ownerReferences")
    ]
    assert await scene.get(GPU_CLAIM, name) == await scene.get(GPU_CLAIM, other["metadata"]["name"])
    assert gates(await scene.get(POD, "virt-launcher-a")) == [GATE]


async def test_a_claim_deleted_under_its_set_comes_back(scene: Scene) -> None:
    """A projector that knew the claim finds it gone and creates it again, with the next decision's status."""
    vmi = await scene.vmi()
    async with scene.projector() as projector:
        scene.decide(projector, scene.waiting(vmi, at=10))
        await projector.idle()
        uid = (await scene.claim(vmi))["metadata"]["uid"]
        await scene.kube.delete(GPU_CLAIM, scene.namespace, scene.claims(vmi, [2])[0].name)

        scene.decide(projector, scene.waiting(vmi, Wait.PAUSED, at=11))
        await projector.idle()

    after = await scene.claim(vmi)
    assert after["metadata"]["uid"] != uid
    assert after["status"]["conditions"][0]["reason"] == "Paused"


async def test_long_names_make_valid_objects(scene: Scene) -> None:
    """C60: class names longer than a label value, and VMI names as long as names get, are written."""
    vmi = await scene.vmi("v" * 250)
    claim = replace(scene.claims(vmi, [1])[0], name="v" * 230 + "-c", class_name="l40s-" + "x" * 200)

    outcomes = await scene.project(replace(scene.waiting(vmi), claims=(claim,)))

    labels = (await scene.get(GPU_CLAIM, claim.name))["metadata"]["labels"]
    assert len(labels["cozystack.io/gpu-class"]) == 63
    assert success(outcomes)


async def test_a_terminating_namespace_settles_everything(scene: Scene) -> None:
    """Where nothing can be created any more nothing is repeated, and the launcher stays as it is."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    await scene.patch(POD, "virt-launcher-a", {"metadata": {"finalizers": ["example.org/slow"]}})
    await scene.kube.delete(NAMESPACE, "", scene.namespace)

    outcomes = await scene.project(scene.placed(vmi, pod))

    after = await scene.get(POD, "virt-launcher-a")
    await scene.patch(POD, "virt-launcher-a", {"metadata": {"finalizers": None}})
    assert gates(after) == [GATE]
    assert success(outcomes)


async def test_a_namespace_that_is_gone_settles_everything(scene: Scene) -> None:
    """A set of a namespace that no longer exists is over."""
    vmi, pod = await scene.vmi(), await scene.launcher()
    gone = replace(vmi, namespace=f"{vmi.namespace}-gone")

    assert success(await scene.project(scene.placed(gone, pod)))
    assert success(await scene.project(scene.waiting(gone, at=11)))


async def stray(scene: Scene, labels: Obj) -> ClaimDropped:
    """A claim that stands there, and the decision that it must go."""
    body = {"metadata": {"name": "stray", "labels": labels}, "spec": {"className": "l40s"}}
    made = await scene.create(GPU_CLAIM, body)
    return ClaimDropped(scene.namespace, "stray", made["metadata"]["uid"])


MARK = {"cozystack.io/gpu-template-claim": "true"}


async def test_a_dropped_claim_is_deleted_by_uid(scene: Scene) -> None:
    """T14: the claim that was told to go goes; the next one of that name stays."""
    dropped = await stray(scene, MARK)
    first = await scene.project(drops=[dropped])
    assert await scene.find(GPU_CLAIM, "stray") is None
    await stray(scene, MARK)

    second = await scene.project(drops=[dropped])

    assert await scene.find(GPU_CLAIM, "stray") is not None
    assert [(one.action, one.code) for one in first + second] == [("drop", 0), ("drop", 0)]


async def test_a_dropped_claim_that_is_no_template_any_more_stays(scene: Scene) -> None:
    """T21: a deletion looks again at what the decision relied on."""
    dropped = await stray(scene, MARK)
    await scene.patch(GPU_CLAIM, "stray", {"metadata": {"labels": {"cozystack.io/gpu-template-claim": None}}})

    await scene.project(drops=[dropped])

    assert await scene.find(GPU_CLAIM, "stray") is not None


async def test_a_class_shows_how_much_there_is(scene: Scene) -> None:
    """Counts of the folded state stand in the class's status, with zeros, and an older count is refused (T22)."""
    name, state = scene.namespace, empty_state()
    spec = {"resourceName": RESOURCE, "mode": "Passthrough"}
    body = {"apiVersion": GPU_CLASS.api_version, "kind": "GPUClass", "metadata": {"name": name}, "spec": spec}
    await scene.kube.create(GPU_CLASS, "", msgspec.json.encode(body))
    state.objects["gpuclasses"][name] = ClassView(name, "uid", "1", resource=RESOURCE)
    state.objects["nodes"]["n"] = NodeView("n", "uid", "1", ready=True, allocatable={RESOURCE: 4})
    for sequence, cordoned in ((8, False), (7, True)):
        state.events_seq = sequence
        state.objects["nodes"]["n"] = replace(state.objects["nodes"]["n"], unschedulable=cordoned)
        await ClassCounts(scene.kube).write(Book(state))

    status = msgspec.json.decode(await scene.kube.get(GPU_CLASS, "", name))["status"]
    await scene.kube.delete(GPU_CLASS, "", name)
    stamp_shown = {"generation": 0, "sequence": 8, "entry": 0}
    assert status == {"allocatable": 4, "held": 0, "free": 4, "mostFree": 4, "stamp": stamp_shown}
