"""When a VM of KubeVirt's asks for a restart: its template against the one it was started from, never its VMI."""

from collections.abc import Callable
from typing import Any

import pytest

from deploy.world.manifests import Obj, condition
from deploy.world.virt_restart import CONDITION, needs_restart
from schemas.kinds import VM, VMI
from tests.world.stage import CARD, SLICE, Stage, staged, vm

pytestmark = pytest.mark.looptime
VOLUME = {"name": "data", "emptyDisk": {"capacity": "1Gi"}}
DISK = {"name": "data", "disk": {"bus": "scsi"}}


def asks(stage: Stage) -> bool:
    """Say whether the VM asks for a restart."""
    found = condition(stage.find(VM, "a") or {}, CONDITION)
    return found is not None and found["status"] == "True"


def into(**fields: object) -> Callable[[Obj], None]:
    """Return a change that sets fields of a template's spec."""
    return lambda spec: spec.update(fields)


def plugged(*, hot: bool) -> Callable[[Obj], None]:
    """Return a change that adds a volume and its disk."""

    def change(spec: Obj) -> None:
        source: dict[str, Any] = {"claimName": "data"} | ({"hotpluggable": True} if hot else {})
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "data", "persistentVolumeClaim": source}]
        spec["domain"]["devices"]["disks"] = [*spec["domain"]["devices"].get("disks", ()), DISK]

    return change


@pytest.mark.parametrize(
    ("change", "live", "staged_too"),
    [
        (into(), False, False),
        (into(nodeSelector={"zone": "b"}), False, True),
        (into(tolerations=[{"operator": "Exists"}]), False, True),
        (into(affinity={"nodeAffinity": {}}), False, True),
        (plugged(hot=True), False, False),
        (plugged(hot=False), True, True),
        (lambda spec: spec["domain"]["devices"].update(gpus=[{"name": "g", "deviceName": SLICE}]), True, True),
        (lambda spec: spec["domain"].update(memory={"guest": "2Gi"}), True, True),
        (into(terminationGracePeriodSeconds=7), True, True),
    ],
    ids=["nothing", "selector", "tolerations", "affinity", "hot-plugged", "volume", "gpus", "memory", "any field"],
)
def test_what_asks_for_a_restart(change: Callable[[Obj], None], live: bool, staged_too: bool) -> None:
    """Placement reaches a running VMI under LiveUpdate alone, hot-plugged volumes under either, the rest never."""
    started: Obj = {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}
    current: Obj = {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}
    change(current)

    assert needs_restart(started, current, live_update=True) is live
    assert needs_restart(started, current, live_update=False) is staged_too
    assert needs_restart(current, current, live_update=False) is False


@pytest.mark.parametrize("controller_restarts", [False, True])
async def test_what_admission_wrote_into_a_vmi_asks_for_nothing(controller_restarts: bool) -> None:
    """C58: devices, volume and disk on the VMI alone are no difference; the same in the template are one.

    Who asks for a restart has nothing live-updated; after it, or with the change taken back, nobody asks any more.
    """
    async with staged() as stage:
        written: list[Obj] = [
            {"op": "add", "path": "/spec/domain/devices/gpus", "value": [{"name": "g", "deviceName": CARD}]},
            {"op": "add", "path": "/spec/volumes", "value": [VOLUME]},
            {"op": "add", "path": "/spec/domain/devices/disks", "value": [DISK]},
        ]
        stage.mutate("a-writer", "virtualmachineinstances.kubevirt.io", written)
        await stage.create(VM, vm("a"))
        await stage.phase("a", "Scheduling")
        await stage.settle(5.0)
        assert not asks(stage)
        if controller_restarts:
            stage.kubevirt.start_anew()

        spec: Obj = {"domain": {"devices": {"gpus": [{"name": "g", "deviceName": CARD}]}}}
        await stage.change(VM, "a", {"spec": {"template": {"spec": spec}}})
        await stage.until(lambda: asks(stage))
        await stage.change(VM, "a", {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}})
        await stage.settle(5.0)
        vmi = stage.find(VMI, "a")
        assert vmi is not None
        assert "nodeSelector" not in vmi["spec"]

        await stage.change(VM, "a", {"spec": {"template": {"spec": {"domain": {"devices": {"gpus": None}}}}}})
        await stage.until(lambda: not asks(stage))
        await stage.until(lambda: (stage.find(VMI, "a") or {})["spec"].get("nodeSelector") == {"zone": "b"})

        await stage.change(VM, "a", {"spec": {"template": {"spec": spec}}})
        await stage.until(lambda: asks(stage))
        before = (stage.find(VMI, "a") or {})["metadata"]["uid"]
        await stage.delete(VMI, "a")
        await stage.until(lambda: (stage.find(VMI, "a") or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
        await stage.until(lambda: not asks(stage))
