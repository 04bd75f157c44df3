"""Usage records: one per claim, owned by it, as was decided (F2, N3, C53)."""

import pytest
from msgspec.structs import replace

from binder.kube import ApiError
from binder.state import empty_state
from deploy.world.apiserver import ApiServer
from deploy.world.faults import Call, Fault, FaultyKube
from projector.claim_records import MirroredClaim, record_of
from projector.records import record_name
from schemas.decisions import VmiId
from schemas.kinds import GPU_CLAIM, WORKLOAD
from schemas.names import CLAIM_RECORD_PREFIX, SETTING_ENABLED, STAMP_ANNOTATION
from schemas.objects import SettingsView
from schemas.reasons import Unkept
from tests.projector.faults import Refusal
from tests.projector.recording import UNITS, claims_of, gone, order, record, recording, saying, stamped, units
from tests.projector.scene import NODE, Scene, stamp, time_passes

NODE_NOTE, VM_NOTE = "cozystack.io/gpu-node", "cozystack.io/gpu-vm"


async def test_each_claim_has_a_record_that_says_what_it_holds(scene: Scene) -> None:
    """F2: class, units, node, VM and the decision stand in a Workload owned by the claim, under no monitor."""
    vmi = await scene.vmi()
    placed = replace(scene.waiting(vmi, units=(2, 1)), node=NODE, reason=None)
    first, second = await claims_of(scene, placed)
    name = first["metadata"]["name"]
    async with recording(scene) as keeper:
        keeper.decide(placed)
        shown = await record(scene, name, saying(2))
        assert units(await record(scene, second["metadata"]["name"], saying(1))) == "1"

    metadata = shown["metadata"]
    owner = {"apiVersion": GPU_CLAIM.api_version, "kind": "GPUClaim", "name": name, "uid": first["metadata"]["uid"]}
    assert metadata["ownerReferences"] == [owner | {"blockOwnerDeletion": False}]
    assert metadata["labels"] == {"cozystack.io/gpu-class": "l40s", "app.kubernetes.io/managed-by": "gpubinder"}
    assert metadata["annotations"] == {NODE_NOTE: NODE, VM_NOTE: "vm-a", STAMP_ANNOTATION: "1.10.0"}
    assert shown["status"] == {"kind": "gpu", "type": "l40s", "resources": {UNITS: "2"}, "operational": True}


async def test_the_record_follows_the_decisions(scene: Scene) -> None:
    """C53: while a claim waits its record says 0, from the first day on; then its units; then 0 again."""
    vmi = await scene.vmi()
    waiting = scene.waiting(vmi, at=10)
    (claim,) = await claims_of(scene, waiting)
    said = []
    async with recording(scene) as keeper:
        for at, node in ((10, ""), (11, NODE), (12, "")):
            keeper.decide(replace(waiting, node=node, stamp=stamp(at)))
            shown = await record(scene, claim["metadata"]["name"], stamped(at))
            said.append((units(shown), shown["status"]["operational"], shown["metadata"]["annotations"][NODE_NOTE]))

    assert said == [("0", False, ""), ("2", True, NODE), ("0", False, "")]


async def test_an_ordered_claim_counts_while_bound_and_while_lost(scene: Scene) -> None:
    """C53, B4: Pending it counts nothing, with a record all the same; Bound and Lost it counts as in budgets."""
    holding = await order(scene)
    vmi = VmiId(scene.namespace, "vm-a", "uid-a")
    said = []
    async with recording(scene) as keeper:
        said.append((units(await record(scene, "mine")), "", False))
        for now in (
            replace(holding, node=NODE, attached=vmi, stamp=stamp(11)),
            replace(holding, lost=Unkept.NODE_GONE, stamp=stamp(12)),
        ):
            keeper.hold(now)
            shown = await record(scene, "mine", stamped(now.stamp.sequence))
            notes = shown["metadata"]["annotations"]
            said.append((units(shown), notes[VM_NOTE], shown["status"]["operational"]))

    assert said == [("0", "", False), ("3", "vm-a", True), ("3", "", False)]


async def test_a_record_goes_with_its_claim_and_is_not_made_again(scene: Scene) -> None:
    """C32: garbage collection takes the record when the claim is gone; while the claim still goes, it stays."""
    made = await scene.create(
        GPU_CLAIM,
        {"metadata": {"name": "mine", "finalizers": ["cozystack.io/gpu-claim"]}, "spec": {"className": "l40s"}},
    )
    async with recording(scene):
        before = await record(scene, "mine")
        await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine", uid=made["metadata"]["uid"])
        assert (await record(scene, "mine"))["metadata"]["uid"] == before["metadata"]["uid"]
        await scene.patch(GPU_CLAIM, "mine", {"metadata": {"finalizers": None}})
        await gone(scene, "mine")
        await order(scene, "other")
        await record(scene, "other")
        assert [one["metadata"]["name"] for one in await scene.all(WORKLOAD)] == ["gpuclaim-other"]


async def test_a_claim_made_again_under_its_name_has_a_record_of_its_own(scene: Scene) -> None:
    """N3: the record of the claim before is none of the new one's, whatever went first."""
    first = await order(scene)
    async with recording(scene):
        before = await record(scene, "mine")
        await scene.kube.delete(GPU_CLAIM, scene.namespace, "mine", uid=first.claim.uid)
        again = await order(scene, count=2)
        shown = await record(scene, "mine", lambda one: one["metadata"]["ownerReferences"][0]["uid"] == again.claim.uid)

    assert shown["metadata"]["uid"] != before["metadata"]["uid"]
    assert len(shown["metadata"]["ownerReferences"]) == 1


async def test_a_restart_changes_nothing(scene: Scene) -> None:
    """C53: the same records before and after, not even written again."""
    vmi = await scene.vmi()
    placed = replace(scene.waiting(vmi, units=(2, 1)), node=NODE, reason=None)
    names = [one["metadata"]["name"] for one in await claims_of(scene, placed)]
    seen = []
    for number in range(3):
        async with recording(scene) as keeper:
            keeper.decide(placed)
            seen.append([await record(scene, name, saying(count)) for name, count in zip(names, (2, 1), strict=True)])
            # Made last, it is recorded when all before it was looked at.
            await order(scene, f"last-{number}")
            await record(scene, f"last-{number}")

    assert seen[0] == seen[1] == seen[2]


@pytest.mark.looptime
async def test_a_kind_that_comes_later_is_written_then(model: Scene) -> None:
    """C61: without the kind Workload nothing fails; once it is served every claim has its record, and again later."""
    assert isinstance(model.kube, ApiServer)
    model.kube.withdraw(WORKLOAD)
    await order(model)
    async with recording(model):
        await time_passes(60)
        model.kube.serve(WORKLOAD)
        first = await record(model, "mine")
        model.kube.withdraw(WORKLOAD)
        await time_passes(60)
        await order(model, "other")
        model.kube.serve(WORKLOAD)
        assert (await record(model, "mine"))["metadata"]["uid"] == first["metadata"]["uid"]
        await record(model, "other")


@pytest.mark.looptime
async def test_a_refused_record_is_written_when_it_may(model: Scene) -> None:
    """A quota that refuses a record keeps it waiting, and is asked again without another change."""
    refusal = Refusal(ApiError(403, "Forbidden", "exceeded quota"), WORKLOAD)
    await order(model)
    async with recording(model, refusal.door(model.kube)):
        await time_passes(120)
        assert await model.all(WORKLOAD) == []
        refusal.over = True
        await record(model, "mine")


@pytest.mark.looptime
async def test_a_record_is_written_at_most_once_a_second(model: Scene) -> None:
    """However often a claim is decided anew, its record is left alone for a second; the last decision is shown."""
    holding = await order(model)
    writes = 0

    async def counted(call: Call) -> Fault | None:
        nonlocal writes
        writes += call.verb == "patch" and call.resource == WORKLOAD
        return None

    async with recording(model, FaultyKube(model.kube, counted)) as keeper:
        await record(model, "mine")
        for at in range(11, 61):
            keeper.hold(replace(holding, node=NODE, stamp=stamp(at)))
            await time_passes(0.1)
        await record(model, "mine", stamped(60))

    assert 2 <= writes <= 7


async def test_records_are_kept_with_the_feature_off(model: Scene) -> None:
    """F2: whether GPUs are enabled or not, what was decided is recorded."""
    off = SettingsView("gpubinder-settings", "uid", "1", "gpubinder-system", data={SETTING_ENABLED: "false"})
    model.state.objects["configmaps"][off.key] = off
    holding = await order(model)
    async with recording(model) as keeper:
        keeper.hold(replace(holding, node=NODE, stamp=stamp(11)))
        assert units(await record(model, "mine", saying(3))) == "3"


def test_a_name_that_is_too_long_is_cut_with_a_hash() -> None:
    """N3: two claims whose long names differ at the end have two records, with names that the API server takes."""
    long = "a" * 252
    one, other = (record_name(CLAIM_RECORD_PREFIX, long + end) for end in "bc")

    assert one != other
    assert {len(one), len(other)} == {253}
    assert one.startswith("gpuclaim-aaa")
    assert record_name(CLAIM_RECORD_PREFIX, "b" * 244) == "gpuclaim-" + "b" * 244


def test_a_template_claim_that_no_set_names_has_no_record() -> None:
    """T14: what nobody decided is not charged; a template mark on a tenant's own claim makes no record."""
    claim = MirroredClaim(
        name="forged", namespace="a", uid="u", rv="1", class_name="l40s", count=4, template=True, vmi_uid="nobody"
    )

    assert record_of(empty_state(), claim) is None
