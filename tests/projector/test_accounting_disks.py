"""DataVolumes of a workload: one that is not filled makes its monitor not operational, and is named there (W1-W3)."""

import pytest

from deploy.world.apiserver import ApiServer
from projector.disks import BROKEN, IN_FLIGHT, Disk
from schemas.kinds import DATA_VOLUME
from tests.projector.monitored import accounting, disk, monitor, pod, says, tells
from tests.projector.scene import Scene


@pytest.mark.parametrize("phase", ["Succeeded", "WaitForFirstConsumer", "PendingPopulation", "ANewOne"])
def test_a_disk_that_is_filled_or_rests_is_no_trouble(phase: str) -> None:
    """A phase that nobody knows counts as settled: a newer CDI turns no working disk into trouble."""
    assert Disk(name="a", namespace="t", uid="u", rv="1", labels={}, phase=phase).trouble == ""


@pytest.mark.parametrize("phase", [*IN_FLIGHT, *BROKEN])
def test_a_disk_that_is_filled_or_broken_is_named(phase: str) -> None:
    """What CDI works at, gave up, or could not begin."""
    told = Disk(name="a", namespace="t", uid="u", rv="1", labels={}, phase=phase).trouble

    assert told == (f"DataVolume a is {phase}" if phase else "DataVolume a has no phase")


async def test_a_workload_works_once_its_disks_are_filled(model: Scene) -> None:
    """As cozystack has it: the monitor names each such disk, by name, and forgets it when it is filled or gone."""
    assert isinstance(model.kube, ApiServer)
    model.kube.serve(DATA_VOLUME)
    await monitor(model)
    await pod(model)
    await disk(model, "b", "ImportInProgress")
    await disk(model, "a", "")
    await disk(model, "other", "Failed", labels={"app": "web"})
    async with accounting(model):
        await tells(model, "db", "DataVolume a has no phase; DataVolume b is ImportInProgress", operational=False)
        await model.patch(DATA_VOLUME, "b", {"status": {"phase": "Succeeded"}}, "status")
        await tells(model, "db", "DataVolume a has no phase", operational=False)
        await model.kube.delete(DATA_VOLUME, model.namespace, "a")
        await says(model, "db", 1, 1, operational=True)


@pytest.mark.looptime
async def test_what_was_said_of_disks_holds_until_they_are_listed(model: Scene) -> None:
    """After a restart a stuck disk is no working one; where CDI is not served, or goes away, there are no disks."""
    assert isinstance(model.kube, ApiServer)
    model.kube.serve(DATA_VOLUME)
    await monitor(model)
    await disk(model, "a", "Failed")
    async with accounting(model):
        await tells(model, "db", "DataVolume a is Failed", operational=False)
        await pod(model)
        await tells(model, "db", "DataVolume a is Failed", operational=False)
        model.kube.withdraw(DATA_VOLUME)
        await says(model, "db", 1, 1, operational=True)
        model.kube.serve(DATA_VOLUME)
        await tells(model, "db", "DataVolume a is Failed", operational=False)
