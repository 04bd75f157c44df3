"""A licence at the desk: volume and disk on the VMI, once, last, without a place in the boot order (L5)."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from schemas.kinds import GPU_CLASS
from tests.webhooks.given import SLICE, Desk, Obj, gpus, opened, vmi

pytestmark = pytest.mark.looptime

VOLUME = {
    "name": "gpubinder-licence",
    "secret": {"secretName": "gpu-licence-l40s-24q", "volumeLabel": "GPULICENCE"},
}
DISK = {"name": "gpubinder-licence", "cdrom": {"bus": "sata", "readonly": True, "tray": "closed"}}
ENTRY = gpus({"className": "l40s-24q"})


@pytest.fixture
async def licensed() -> AsyncIterator[Desk]:
    """A desk with a vGPU class that needs a licence, beside those that need none."""
    async with opened() as desk:
        spec = {"resourceName": f"{SLICE}-Q", "mode": "VGPU", "license": {"secretName": "lic"}}
        await desk.create(GPU_CLASS, "l40s-24q", {"spec": spec})
        long = {"resourceName": "nvidia.com/long", "mode": "VGPU", "license": {"secretName": "lic"}}
        await desk.create(GPU_CLASS, "c" * 60 + "-24c", {"spec": long})
        yield desk


def parts(obj: Obj) -> tuple[Any, Any]:
    """Return the VMI's volumes and disks."""
    return obj["spec"].get("volumes"), obj["spec"]["domain"]["devices"].get("disks")


async def test_volume_and_disk_come_last(licensed: Desk) -> None:
    """The copy's volume with its label, and a CD after the VMI's other disks, without bootOrder (L5)."""
    obj = vmi(ENTRY, devices={"disks": [{"name": "root", "disk": {}, "bootOrder": 1}, {"name": "data", "disk": {}}]})

    answer = await licensed.vmi(obj)

    assert answer.allowed
    assert parts(answer.obj) == (
        [*obj["spec"]["volumes"], VOLUME],
        [*obj["spec"]["domain"]["devices"]["disks"], DISK],
    )


async def test_the_second_call_adds_nothing(licensed: Desk) -> None:
    """Asked again for its own output, also where somebody wrote nulls into it or a disk behind it (C26)."""
    first = await licensed.vmi(vmi(ENTRY))
    first.obj["spec"]["domain"]["devices"]["disks"][-1]["bootOrder"] = None
    first.obj["spec"]["domain"]["devices"]["disks"].append({"name": "late", "disk": {}})

    second = await licensed.vmi(first.obj)

    assert second.allowed
    assert second.patch == ()


@pytest.mark.parametrize("devices", [None, {}, {"disks": None}, {"disks": []}])
@pytest.mark.parametrize("volumes", [None, []])
async def test_lists_may_be_absent_or_null(licensed: Desk, devices: Obj | None, volumes: list[Obj] | None) -> None:
    """The patch fits a VMI without devices, disks or volumes."""
    obj = vmi(ENTRY)
    obj["spec"]["domain"]["devices"] = devices
    obj["spec"]["volumes"] = volumes

    answer = await licensed.vmi(obj)

    assert parts(answer.obj) == ([VOLUME], [DISK])


async def test_classes_without_a_licence_add_no_disk(licensed: Desk) -> None:
    """Passthrough and unlicensed vGPU classes leave volumes and disks as they are."""
    obj = vmi(gpus({"className": "l40s-24c", "count": 1}, {"className": "l40s"}))

    answer = await licensed.vmi(obj)

    assert answer.allowed
    assert parts(answer.obj) == parts(obj)


FORGED = {
    "another Secret's volume": ([{**VOLUME, "secret": {**VOLUME["secret"], "secretName": "db-password"}}], [DISK]),  # type: ignore[dict-item]  # a dict it is
    "another kind of volume": ([{"name": "gpubinder-licence", "cloudInitNoCloud": {"userData": "hunter3"}}], [DISK]),
    "volume without disk": ([VOLUME], []),
    "disk without volume": ([], [DISK]),
    "a disk to boot from": ([VOLUME], [{**DISK, "bootOrder": 1}]),
    "two disks": ([VOLUME], [DISK, DISK]),
    "a name that is no text": ([VOLUME], [DISK, {"name": 7}, DISK]),
}


@pytest.mark.parametrize(("volumes", "disks"), FORGED.values(), ids=FORGED.keys())
async def test_our_name_proves_nothing(licensed: Desk, volumes: list[Obj], disks: list[Obj]) -> None:
    """What has our name and is not exactly ours is refused, and nothing of it is told further (C26, T16)."""
    obj = vmi(ENTRY, devices={"disks": disks})
    obj["spec"]["volumes"] = volumes

    answer = await licensed.vmi(obj)

    assert (answer.allowed, answer.code, answer.reason) == (False, 403, "ReservedMark")
    assert "a reserved name, that differs from the licence's" in answer.message
    assert b"hunter3" not in b"".join(licensed.events())


async def test_names_of_long_classes_fit(licensed: Desk) -> None:
    """C60: the volume's name is fixed, the Secret's is cut and hashed, whatever the class is called."""
    answer = await licensed.vmi(vmi(gpus({"className": "c" * 60 + "-24c"})))

    volume = answer.obj["spec"]["volumes"][-1]
    assert volume["name"] == "gpubinder-licence"
    assert len(volume["secret"]["secretName"]) <= 75


async def test_a_missing_copy_is_not_refused(licensed: Desk) -> None:
    """L5: nobody looks for the Secret; kubelet holds the launcher until it is there."""
    assert (await licensed.vmi(vmi(ENTRY))).allowed


async def test_a_decision_tells_the_secret_by_name_alone(licensed: Desk) -> None:
    """The stream holds the copy's name; what the VMI's own volumes hold stays behind (T16)."""
    await licensed.vmi(vmi(ENTRY))

    assert b"hunter2" not in b"".join(licensed.events())
    assert msgspec.json.decode(licensed.events()[-1])["type"] == "request.vmi"
