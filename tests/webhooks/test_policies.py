"""A tenant's forgeries on a real API server, and all who must still be able to do their work (N4, F1)."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from binder.kube_client import KubeClient
from deploy import standing_rules
from deploy.standing_rules import install_policies
from schemas.kinds import GPU_CLAIM, KUBEVIRT, POD, SECRET, VMI
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import GPUBINDER
from tests.webhooks.given import launcher, until, vmi
from tests.webhooks.guarding import Guarded, denied, guarded
from tests.webhooks.test_on_api_server import front, owned

DRY = {"dryRun": "All"}
LAUNCHER = {"kubevirt.io": "virt-launcher"}
BUDGETS = "/apis/cozystack.io/v1alpha1/namespaces/{}/gpubudgets"


@pytest.fixture
async def here(control_plane: ControlPlane, api: Api, namespace: str) -> AsyncIterator[Guarded]:
    """An API server that holds to the policies."""
    async with guarded(control_plane, api, namespace) as standing:
        yield standing


def claim(name: str = "mine", **metadata: object) -> Object:
    """Return a claim of a tenant's own."""
    spec = {"className": "l40s", "count": 1}
    head = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind}
    return head | {"metadata": {"name": name, **metadata}, "spec": spec}


def copy(name: str = "copy", **metadata: object) -> Object:
    """Return a Secret with the label of licence copies."""
    labels = {"cozystack.io/gpu-class": "l40s-24c"}
    return {
        "metadata": {"name": name, "labels": labels, **metadata},
        "data": {"client_configuration_token.tok": "VA=="},
    }


def text(policy: str, what: str) -> str:
    """Return how the API server begins a refusal."""
    name = f"{policy}.gpubinder.cozystack.io"
    return f"{what} is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "


async def test_a_tenant_writes_no_status(here: Guarded) -> None:
    """N4: the status of a claim is the program's alone; the refusal says whose, and where that is set."""
    claims = GPU_CLAIM.path(here.namespace)
    made = await here.tenant.create(claims, claim())
    status = {"phase": "Bound", "nodeName": "n1", "stamp": {"generation": 1, "sequence": 1, "entry": 0}}
    path = f"{claims}/mine/status"

    said = await denied(lambda: here.tenant.patch(path, {"status": status}, **DRY))
    shown = await here.ours.patch(path, {"status": status})

    assert said == text("status", 'gpuclaims.cozystack.io "mine"') + (
        "the status of GPU claims, classes and budgets shows what gpubinder decided: it is written by its own users "
        f"alone (controllers in ConfigMap {here.system}/gpubinder-settings names them)"
    )
    assert made["metadata"]["name"] == "mine"
    assert shown["status"]["phase"] == "Bound"


async def test_a_tenant_marks_no_claim(here: Guarded) -> None:
    """Label of template claims and our finalizer: neither put on at create or later, nor taken off."""
    claims = GPU_CLAIM.path(here.namespace)
    label, finalizers = {"cozystack.io/gpu-template-claim": "true"}, ["cozystack.io/gpu-claim"]
    for metadata in ({"labels": label}, {"finalizers": finalizers}):
        said = await denied(partial(here.tenant.create, claims, claim(**metadata), **DRY))
        assert said.startswith(text("claims", 'gpuclaims.cozystack.io "mine"'))
    await here.ours.create(claims, claim(labels=label, finalizers=finalizers))

    for change in ({"labels": {"cozystack.io/gpu-template-claim": None}}, {"finalizers": None}):
        with pytest.raises(Refused, match=r"leave it as it is|put on and taken off by gpubinder alone"):
            await here.tenant.patch(f"{claims}/mine", {"metadata": change})
    await here.tenant.patch(f"{claims}/mine", {"metadata": {"labels": {"team": "a"}}})
    await here.tenant.delete(f"{claims}/mine")
    # It goes, and still only we let go of it; the platform can where we are gone.
    with pytest.raises(Refused, match="put on and taken off by gpubinder alone"):
        await here.tenant.patch(f"{claims}/mine", {"metadata": {"finalizers": None}})
    await here.admin.patch(f"{claims}/mine", {"metadata": {"finalizers": None}})
    assert await here.admin.find(f"{claims}/mine") is None


async def test_budgets_are_the_platforms(here: Guarded) -> None:
    """A tenant with every right in its namespace raises no budget and removes none; a namespace's end does (B1)."""
    budgets = BUDGETS.format(here.namespace)
    body = {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "GPUBudget",
        "metadata": {"name": "quota"},
        "spec": {"hard": {"gpus.cozystack.io": 1}},
    }

    said = await denied(lambda: here.tenant.create(budgets, body, **DRY))
    await here.admin.create(budgets, body)

    assert said.startswith(text("budgets", 'gpubudgets.cozystack.io "quota"') + "GPU budgets are set by the platform")
    with pytest.raises(Refused, match="set by the platform alone"):
        await here.tenant.patch(f"{budgets}/quota", {"spec": {"hard": {"gpus.cozystack.io": 9}}})
    with pytest.raises(Refused, match="set by the platform alone"):
        await here.tenant.delete(f"{budgets}/quota")
    await here.collector.patch(f"{budgets}/quota", {"metadata": {"ownerReferences": None}})
    await here.ender.delete(f"{budgets}/quota")
    assert await here.admin.find(f"{budgets}/quota") is None


async def test_licence_copies_are_ours(here: Guarded) -> None:
    """L4: nobody else writes a Secret with our label, or puts it on one; others are let alone, deletion is free."""
    secrets = SECRET.path(here.namespace)

    said = await denied(lambda: here.tenant.create(secrets, copy(), **DRY))
    await here.ours.create(secrets, copy(finalizers=["example.org/held"]))
    await here.tenant.create(secrets, {"metadata": {"name": "own"}, "data": {"a": "VA=="}})

    assert said.startswith(text("licences", 'secrets "copy"') + "a Secret with the label cozystack.io/gpu-class is a")
    for path, change in (
        (f"{secrets}/copy", {"data": {"gridd.conf": "VA=="}}),
        (f"{secrets}/copy", {"metadata": {"labels": {"cozystack.io/gpu-class": None}}}),
        (f"{secrets}/own", {"metadata": {"labels": {"cozystack.io/gpu-class": "l40s"}}}),
    ):
        with pytest.raises(Refused, match="is a copy of a licence and written by gpubinder alone"):
            await here.tenant.patch(path, change)
    await here.tenant.patch(f"{secrets}/own", {"data": {"b": "VA=="}})
    await here.tenant.delete(f"{secrets}/copy")
    await here.tenant.patch(f"{secrets}/copy", {"metadata": {"finalizers": None}})
    assert await here.admin.find(f"{secrets}/copy") is None


async def test_what_a_machine_was_admitted_with_stays(here: Guarded) -> None:
    """Entries, start policy and reference don't change on a VMI, whoever asks; everything else does."""
    machines = VMI.path(here.namespace)
    body = vmi()
    del body["metadata"]["namespace"]
    body["metadata"]["annotations"]["cozystack.io/gpu-start-policy"] = "Wait"
    body["metadata"]["finalizers"] = ["example.org/held"]
    await here.kubevirt.create(machines, body)
    changes = (
        {"annotations": {"cozystack.io/gpus": '[{"className":"l40s","count":9}]'}},
        {"annotations": {"cozystack.io/gpu-start-policy": "Schedule"}},
        {"labels": {"cozystack.io/gpu-reference": None}},
    )

    for change in changes:
        said = await denied(partial(here.kubevirt.patch, f"{machines}/vm1", {"metadata": change}, **DRY))
        assert said.startswith(text("vmis", 'virtualmachineinstances.kubevirt.io "vm1"'))
        assert said.endswith("stays as it was admitted: change the template of the virtual machine and restart it")
    await here.kubevirt.patch(
        f"{machines}/vm1", {"status": {"phase": "Scheduling"}, "metadata": {"labels": {"a": "b"}}}
    )
    await here.kubevirt.delete(f"{machines}/vm1")
    await here.kubevirt.patch(f"{machines}/vm1", {"metadata": {"finalizers": None}})
    assert await here.admin.find(f"{machines}/vm1") is None


async def test_launchers_are_kubevirts(here: Guarded) -> None:
    """Once the settings say where KubeVirt runs, its marks are its own; ours on a pod stay as they were admitted."""
    pods = POD.path(here.namespace)
    settings = f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings"
    pod = launcher()
    for field in ("namespace", "ownerReferences", "generateName"):
        pod["metadata"].pop(field, None)
    pod["metadata"]["name"] = "virt-launcher-vm1"
    pod["metadata"]["annotations"]["cozystack.io/gpu-admission"] = "r1"
    # Nobody said where KubeVirt runs: no launcher is held up for that (I2).
    assert "kubevirtNamespace" not in (await here.admin.get(settings)).get("data", {})
    await here.tenant.create(pods, pod, **DRY)
    await here.admin.patch(settings, {"data": {"kubevirtNamespace": "kubevirt"}})

    said = await denied(lambda: here.tenant.create(pods, pod, **DRY))
    await here.kubevirt.create(pods, pod)
    await here.tenant.create(pods, {"metadata": {"name": "plain"}, "spec": pod["spec"]})

    assert said.startswith(text("launchers", 'pods "virt-launcher-vm1"') + "the labels and annotations of a launcher")
    path = f"{pods}/virt-launcher-vm1"
    for at in (path, f"{path}/status"):
        for change in (
            {"labels": {"kubevirt.io": None}},
            {"annotations": {"kubevirt.io/ephemeral-provisioning": "true"}},
        ):
            with pytest.raises(Refused, match="are KubeVirt's alone"):
                await here.tenant.patch(at, {"metadata": change})
        for change in (
            {"annotations": {"cozystack.io/gpu-admission": "r2"}},
            {"labels": {"cozystack.io/gpu-reference": None}},
        ):
            await denied(partial(here.kubevirt.patch, at, {"metadata": change}, **DRY))
    with pytest.raises(Refused, match="are KubeVirt's alone"):
        await here.tenant.patch(f"{pods}/plain", {"metadata": {"labels": {"kubevirt.io": "virt-launcher"}}})
    await here.kubevirt.patch(
        path, {"metadata": {"labels": {"kubevirt.io/nodeName": "n1", "kubevirt.io/created-by": "u2"}}}
    )
    await here.tenant.patch(path, {"metadata": {"labels": {"team": "a"}}})
    gate = [{"op": "remove", "path": "/spec/schedulingGates"}] if "schedulingGates" in pod["spec"] else []
    await here.ours.patch(path, gate, content="application/json-patch+json")
    await here.tenant.delete(path, gracePeriodSeconds="0")


async def test_installed_again_they_say_the_same(here: Guarded, control_plane: ControlPlane) -> None:
    """The settings are made once and keep what an operator said; installing again changes nothing."""
    settings = f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings"
    first = await here.admin.get(settings)
    await here.admin.patch(settings, {"data": {"startPolicy": "Wait"}})
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER)))
    try:
        await install_policies(kube, here.system)
    finally:
        await kube.close()

    assert first["data"] == {"controllers": GPUBINDER.name}
    assert (await here.admin.get(settings))["data"] == {"controllers": GPUBINDER.name, "startPolicy": "Wait"}


async def test_the_settings_are_looked_after(
    here: Guarded, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ConfigMap that was deleted is made again, and names KubeVirt's namespace once KubeVirt is there (D12)."""
    monkeypatch.setattr(standing_rules, "LOOK_SECONDS", 0.05)
    settings = f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings"
    kube = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER)))
    keeping = asyncio.create_task(standing_rules.keep_settings(kube, here.system))
    custom = {"apiVersion": KUBEVIRT.api_version, "kind": KUBEVIRT.kind, "metadata": {"name": "kv"}, "spec": {}}
    try:
        await here.admin.delete(settings)
        await here.admin.until(settings, lambda found: found is not None)
        await here.admin.create(KUBEVIRT.path(here.namespace), custom)
        said = await here.admin.until(settings, lambda found: "kubevirtNamespace" in ((found or {}).get("data") or {}))
    finally:
        keeping.cancel()
        await here.admin.delete(KUBEVIRT.path(here.namespace, "kv"))
        await asyncio.gather(keeping, return_exceptions=True)
        await kube.close()

    assert said is not None
    assert said["data"] == {"controllers": GPUBINDER.name, "kubevirtNamespace": here.namespace}


async def test_where_the_settings_are_gone_nothing_hangs(here: Guarded) -> None:
    """F1: a namespace that ends after ours ends: policies without their settings are silent."""
    claims = GPU_CLAIM.path(here.namespace)
    await here.ours.create(claims, claim(finalizers=["cozystack.io/gpu-claim"]))
    await denied(lambda: here.tenant.patch(f"{claims}/mine", {"metadata": {"finalizers": None}}, **DRY))
    await here.admin.delete(f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings")
    await here.tenant.delete(f"{claims}/mine")

    async def let_go() -> bool:
        try:
            await here.tenant.patch(f"{claims}/mine", {"metadata": {"finalizers": None}})
        except Refused as refused:
            return "put on and taken off" not in str(refused)
        return True

    await until(let_go)
    assert await here.admin.find(f"{claims}/mine") is None


async def test_a_start_passes_them(here: Guarded, control_plane: ControlPlane, tmp_path: Path) -> None:
    """What our webhooks wrote is blamed on nobody: forged marks are overwritten at create, and nothing is refused.

    The API server asks policies after every mutating webhook, and about the object as they left it.
    """
    await here.admin.patch(
        f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings", {"data": {"kubevirtNamespace": "kubevirt"}}
    )
    async with front(control_plane, here.admin, here.namespace, tmp_path) as desk:
        pod = await owned(desk, "vm1")
        pod["metadata"]["annotations"] |= {"cozystack.io/gpu-admission": "forged"}
        await denied(
            lambda: here.tenant.create(
                desk.pods, {"metadata": pod["metadata"] | {"labels": LAUNCHER}, "spec": pod["spec"]}, **DRY
            )
        )
        made = await desk.kubevirt.create(desk.pods, pod)

    assert made["metadata"]["annotations"]["cozystack.io/gpu-admission"] == desk.clerk.asked[-1].request
    assert made["spec"]["schedulingGates"] == [{"name": "cozystack.io/gpu"}]
