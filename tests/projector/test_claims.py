"""Claims: whose they are, what they show, when they go; and who may no longer write them (N3, T14, T22)."""

from msgspec.structs import replace

from schemas.decisions import ClaimDropped
from schemas.kinds import GPU_CLAIM, NAMESPACE, POD
from schemas.names import GATE
from schemas.reasons import Wait
from tests.projector.scene import NODE, RESOURCE, Obj, Scene, gates, success


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


async def test_a_claim_that_took_the_place_of_ours_is_left_alone(scene: Scene) -> None:
    """N3: a status is for one uid; the claim that somebody made under the name of ours gets none."""
    vmi = await scene.vmi()
    name = scene.claims(vmi, [2])[0].name
    async with scene.projector() as projector:
        scene.decide(projector, scene.waiting(vmi, at=10))
        await projector.idle()
        await scene.kube.delete(GPU_CLAIM, scene.namespace, name)
        await scene.create(GPU_CLAIM, {"metadata": {"name": name}, "spec": {"className": "l40s", "count": 2}})

        scene.decide(projector, scene.waiting(vmi, Wait.PAUSED, at=11))
        await projector.idle()

    assert (await scene.get(GPU_CLAIM, name)).get("status", {}).get("stamp") is None
    assert [(one.action, one.reason) for one in await scene.outcomes() if one.code] == [("claim", "NameTaken")]


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
