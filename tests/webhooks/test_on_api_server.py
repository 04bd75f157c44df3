"""The front desk before a real API server: what it is asked, in which order, and what an outage costs."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from binder.kube_client import KubeClient
from binder.memory_journal import MemoryJournal
from schemas.admission import CONFIGURATION, CONFIGURATION_NAME
from schemas.kinds import GPU_CLASS, KUBEVIRT, NAMESPACE, POD, VMI
from schemas.names import VGPU_LABEL
from schemas.streams import EVENTS
from tests.cluster.api import MERGE, Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import GPUBINDER
from tests.cluster.users import KUBEVIRT as KUBEVIRT_USER
from tests.cluster.webhooks import Served, cut_off, patching, serving
from tests.webhooks.given import GPU_TAINT, PARTITION, READERS, SLICE, Clerk, launcher, until, vmi
from tests.webhooks.made import rotate
from webhooks.configuration import webhook_configuration
from webhooks.server import Listen, Server
from webhooks.service import Patience, Webhooks

HOME = "kubevirt"
LICENCE = "gpubinder-licence"
OURS = [{"name": f"gpubinder-0-{unit}", "deviceName": SLICE} for unit in range(2)]
CLASS = {
    "apiVersion": "cozystack.io/v1alpha1",
    "kind": "GPUClass",
    "metadata": {"name": "l40s-24c"},
    "spec": {"resourceName": SLICE, "mode": "VGPU", "maxCount": 2, "tolerations": [GPU_TAINT, PARTITION]},
}
CR = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "KubeVirt",
    "metadata": {"name": "kubevirt"},
    "spec": {"configuration": {}},
}


def machine(name: str, *, labelled: bool = True) -> Object:
    """Return a VMI, with or without its reference to GPUs."""
    obj = vmi()
    obj["metadata"] = {"name": name} | ({k: obj["metadata"][k] for k in ("labels", "annotations")} if labelled else {})
    return obj


def gpus_of(obj: Object) -> Any:  # noqa: ANN401 - any JSON
    """Return a VMI's gpus."""
    return obj["spec"]["domain"]["devices"].get("gpus")


class Front:
    """Webhooks that the API server asks at `port`, the clerk behind them, and KubeVirt's own client."""

    def __init__(
        self, api: Api, kubevirt: Api, namespace: str, clerk: Clerk, journal: MemoryJournal, port: int
    ) -> None:
        self.api, self.kubevirt, self.clerk, self.journal, self.port = api, kubevirt, clerk, journal, port
        self.vmis, self.pods = VMI.path(namespace), POD.path(namespace)


@asynccontextmanager
async def front(control_plane: ControlPlane, api: Api, namespace: str, files: Path) -> AsyncIterator[Front]:
    """Stand the webhooks up and register them; the block begins when the API server asks them."""
    if await api.find(f"/api/v1/namespaces/{HOME}") is None:
        await api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
    await api.patch(NAMESPACE.path(name=namespace), {"metadata": {"labels": {VGPU_LABEL: "true"}}})
    await api.create(GPU_CLASS.path(), CLASS)
    await api.create(KUBEVIRT.path(HOME), CR)
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER)))
    journal = MemoryJournal()
    clerk = Clerk(journal)
    await clerk.open_epoch()
    webhooks = Webhooks(kube, journal, clerk, READERS, patience=Patience(answer_s=8.0))
    tasks = [asyncio.create_task(part) for part in (webhooks.run(), clerk.run())]
    bundle = rotate(files, ("127.0.0.1",), datetime.now(UTC))
    listen = Listen(files / "tls.crt", files / "tls.key", host="127.0.0.1", port=0, reload_s=0.5)
    try:
        async with Server(webhooks, listen) as server, Api(control_plane.kubeconfig(KUBEVIRT_USER)) as kubevirt:
            await api.create(CONFIGURATION.path(), webhook_configuration(f"https://127.0.0.1:{server.port}", bundle))
            standing = Front(api, kubevirt, namespace, clerk, journal, server.port)
            await until_asked(standing)
            clerk.asked.clear()
            yield standing
        await cut_off(server.port)
    finally:
        await api.delete(CONFIGURATION.path(name=CONFIGURATION_NAME))
        await api.delete(KUBEVIRT.path(HOME, "kubevirt"))
        await api.delete(GPU_CLASS.path(name="l40s-24c"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await kube.close()


async def until_asked(standing: Front) -> None:
    """Wait until the API server has heard of the configuration; dry runs leave nothing behind."""

    async def asked() -> bool:
        return bool(gpus_of(await standing.api.create(standing.vmis, machine("look"), dryRun="All")))

    await until(asked)


@pytest.fixture
async def desk(control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> AsyncIterator[Front]:
    """The webhooks before a real API server."""
    async with front(control_plane, api, namespace, tmp_path) as standing:
        yield standing


async def owned(desk: Front, name: str) -> Object:
    """Create a VMI and return a launcher of it, as virt-controller would post it."""
    stored = await desk.kubevirt.create(desk.vmis, machine(name))
    pod = launcher()
    pod["metadata"]["ownerReferences"][0] |= {"name": name, "uid": stored["metadata"]["uid"]}
    return pod


async def test_a_start_goes_through(desk: Front) -> None:
    """VMI and launcher are stored as the answers made them; the pod is held by our gate (A1, P2, P3, C47)."""
    pod = await owned(desk, "vm1")
    stored = await desk.kubevirt.find(f"{desk.vmis}/vm1")
    made = await desk.kubevirt.create(desk.pods, pod)

    assert stored is not None
    assert gpus_of(stored) == OURS
    assert stored["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] == "Wait"
    assert made["spec"]["schedulingGates"] == [{"name": "cozystack.io/gpu"}]
    assert all(
        toleration in made["spec"]["tolerations"] for toleration in (GPU_TAINT, PARTITION | {"operator": "Equal"})
    )
    assert made["metadata"]["annotations"]["cozystack.io/gpu-admission"] == desk.clerk.asked[-1].request
    assert desk.clerk.asked[-1].user == KUBEVIRT_USER.name


async def test_a_refusal_is_what_the_requester_reads(desk: Front) -> None:
    """The whole sentence arrives, with the webhook's name before it, as 403 with our reason (A3)."""
    obj = machine("vm1")
    obj["metadata"]["annotations"]["cozystack.io/gpus"] = '[{"className":"h100"}]'

    with pytest.raises(Refused) as refused:
        await desk.kubevirt.create(desk.vmis, obj)

    assert (refused.value.code, refused.value.status["reason"]) == (403, "ClassNotFound")
    assert refused.value.status["message"] == (
        'admission webhook "vmis.gpubinder.cozystack.io" denied the request: VMI '
        f'{desk.vmis.split("/")[5]}/vm1 names the GPU class "h100" in entry 0, which does not exist: '
        "choose one that `kubectl get gpuclasses` lists"
    )


async def test_a_dry_run_is_on_no_stream(desk: Front) -> None:
    """`--dry-run=server` shows the patched object, leaves none, and the stream holds nothing (T19, C25)."""
    before = len(desk.journal.streams[EVENTS].messages)

    shown = [await desk.kubevirt.create(desk.vmis, machine("dry"), dryRun="All") for _ in range(5)]

    assert [gpus_of(each) for each in shown] == [OURS] * 5
    assert len(desk.journal.streams[EVENTS].messages) == before
    assert await desk.api.find(f"{desk.vmis}/dry") is None


async def test_a_pod_that_poses_as_a_launcher_is_refused(desk: Front) -> None:
    """Anyone else with KubeVirt's labels, be it the administrator, is refused (T17, D11)."""
    pod = await owned(desk, "vm1")

    with pytest.raises(Refused, match="was not created by KubeVirt"):
        await desk.api.create(desk.pods, pod)


def other(name: str) -> Served:
    """Return another mutator of VMIs, called at its name's place in the order."""
    patch = [{"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": 7}]
    return Served(name, patching(patch), [(VMI, ["CREATE"])], mutating=True)


@asynccontextmanager
async def another_mutator(desk: Front, name: str, files: Path) -> AsyncIterator[None]:
    """Have the API server ask another mutator too."""

    async def answering() -> bool:
        made = await desk.api.create(desk.vmis, machine("look", labelled=False), dryRun="All")
        return bool(made["spec"].get("terminationGracePeriodSeconds") == 7)

    async with serving(desk.api, files / "other", [other(name)], answering):
        yield


async def test_we_come_after_kubevirts_mutator(desk: Front, tmp_path: Path) -> None:
    """Configurations are called in the order of their names: behind virt-api's we are asked once (A10)."""
    async with another_mutator(desk, "virt-api-mutator", tmp_path):
        desk.clerk.asked.clear()
        made = await desk.kubevirt.create(desk.vmis, machine("vm1"))

    assert gpus_of(made) == OURS
    assert len(desk.clerk.asked) == 1


async def test_asked_again_nothing_is_written_twice(desk: Front, tmp_path: Path) -> None:
    """A mutator behind us has us asked again, under another uid, and the entries stand once (A10, T17, C26)."""
    async with another_mutator(desk, "zz-late-mutator", tmp_path):
        desk.clerk.asked.clear()
        made = await desk.kubevirt.create(desk.vmis, machine("vm1"))

    assert gpus_of(made) == OURS
    assert len({asked.request for asked in desk.clerk.asked}) == 2
    assert [asked.bound_gpus for asked in desk.clerk.asked] == [  # type: ignore[union-attr]  # both are VMI requests
        (),
        tuple(f"{gpu['name']}={gpu['deviceName']}" for gpu in OURS),
    ]


async def test_asked_again_all_that_we_write_stands_once(desk: Front, tmp_path: Path) -> None:
    """C26: entries, licence and its disk behind those with a boot order, gate and tolerations: each once."""
    await desk.api.patch(GPU_CLASS.path(name="l40s-24c"), {"spec": {"license": {"secretName": "lic"}}})
    patch = [{"op": "add", "path": "/metadata/annotations/late", "value": "yes"}]
    late = Served("zz-late-mutator", patching(patch), [(VMI, ["CREATE"]), (POD, ["CREATE"])], mutating=True)
    body = machine("vm1")
    body["spec"]["domain"]["devices"]["disks"] = [{"name": name, "disk": {}} for name in ("init", "root")]
    body["spec"]["domain"]["devices"]["disks"][1]["bootOrder"] = 1

    async def answering() -> bool:
        made = await desk.api.create(desk.vmis, machine("look"), dryRun="All")
        return "late" in made["metadata"]["annotations"]

    async with serving(desk.api, tmp_path / "other", [late], answering):
        desk.clerk.asked.clear()
        made = await desk.kubevirt.create(desk.vmis, body)
        pod = launcher()
        pod["metadata"]["ownerReferences"][0] |= {"name": "vm1", "uid": made["metadata"]["uid"]}
        launched = await desk.kubevirt.create(desk.pods, pod)

    # What stands behind our gate keeps a fresh log from being begun, until it is gone.
    await desk.api.delete(f"{desk.pods}/{launched['metadata']['name']}", gracePeriodSeconds="0")
    assert gpus_of(made) == OURS
    assert [disk["name"] for disk in made["spec"]["domain"]["devices"]["disks"]] == ["init", "root", LICENCE]
    assert [volume["name"] for volume in made["spec"]["volumes"]] == ["init", LICENCE]
    assert launched["spec"]["schedulingGates"] == [{"name": "cozystack.io/gpu"}]
    ours = [GPU_TAINT, PARTITION | {"operator": "Equal"}]
    assert [one for one in launched["spec"]["tolerations"] if one in ours] == ours
    assert [type(asked).__name__ for asked in desk.clerk.asked] == ["VmiRequest"] * 2 + ["PodRequest"] * 2
    assert launched["metadata"]["annotations"]["cozystack.io/gpu-admission"] == desk.clerk.asked[-1].request


async def test_an_outage_stops_starts_with_gpus_alone(
    desk: Front, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Nobody listens: labelled VMIs and launchers are refused, everything else goes on (C24, I2)."""
    pod = await owned(desk, "vm1")
    nowhere = webhook_configuration("https://127.0.0.1:1", rotate(tmp_path / "x", ("127.0.0.1",), datetime.now(UTC)))
    patch = {"webhooks": nowhere["webhooks"]}
    await desk.api.patch(CONFIGURATION.path(name=CONFIGURATION_NAME), patch, content=MERGE)

    async def out() -> bool:
        try:
            await desk.api.create(desk.vmis, machine("look"), dryRun="All")
        except Refused as refused:
            return refused.code == 500
        return False

    await until(out)
    for collection, obj in ((desk.vmis, machine("vm2")), (desk.pods, pod)):
        with pytest.raises(Refused, match="failed calling webhook"):
            await desk.kubevirt.create(collection, obj)
    plain = copy.deepcopy(pod)
    plain["metadata"] = {"name": "plain", "labels": {"cozystack.io/gpu-reference": "true"}}
    await desk.kubevirt.create(desk.pods, plain)
    await desk.kubevirt.create(desk.vmis, machine("vm3", labelled=False))
    await desk.kubevirt.patch(f"{desk.vmis}/vm1", {"metadata": {"labels": {"x": "y"}}})
    await desk.kubevirt.delete(f"{desk.vmis}/vm1")

    assert await desk.api.find(f"{desk.vmis}/vm1") is None
