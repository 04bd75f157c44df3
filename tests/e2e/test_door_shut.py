"""Every replica of the webhooks is gone: who is held up, and who must not notice (C24, I2)."""

from functools import partial
from typing import Any

import pytest

from schemas.kinds import GPU_CLAIM, LEASE, NAMESPACE, NODE, POD, VM, VMI
from schemas.names import CLAIM_FINALIZER, KUBEVIRT_LABEL, LAUNCHER_VALUE, REFERENCE_LABEL, REFERENCE_VALUE
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import SECONDS, eventually, vm_body
from tests.e2e.test_refusals import vmi

ONE = '[{"className":"l40s"}]'
CONTAINER = {"name": "c", "image": "none"}
DAEMON_SETS = "/apis/apps/v1/namespaces/{}/daemonsets"


def pod(name: str, **labels: str) -> dict[str, Any]:
    """Return a pod that runs nothing."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [CONTAINER]}}


async def elsewhere(program: Stack) -> str:
    """Return another tenant's namespace, with an order that is bound; its namespace is to go with it."""
    other, mine = f"{program.tenant}-other", program.tenant
    await program.api.create(NAMESPACE.path(), {"metadata": {"name": other}})
    program.tenant = other
    await program.order("theirs", "l40s")
    await program.held("theirs", "Bound")
    program.tenant = mine
    return other


async def test_with_no_replica_left_only_starts_with_gpus_and_orders_wait(parts: Stack) -> None:
    """C24, I2: labelled VMIs, launchers and orders are refused; pods, other VMs, deletions and the binder go on.

    All of our webhooks are registered, as the chart has them. Once a replica is back, KubeVirt starts the VM by itself.
    """
    program, api, tenant = parts, parts.api, parts.tenant
    await program.apart("webhooks-2")
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    await program.order("mine", "l40s")
    await program.held("mine", "Bound")
    other = await elsewhere(program)
    for name in ("webhooks", "webhooks-2"):
        program.processes.children[name].kill()

    launcher = pod("launcher", **{KUBEVIRT_LABEL: LAUNCHER_VALUE, REFERENCE_LABEL: REFERENCE_VALUE})
    order = {"metadata": {"name": "late"}, "spec": {"className": "l40s", "count": 1}}
    order |= {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind}
    for path, body in (
        (VMI.path(tenant), vmi(ONE)),
        (POD.path(tenant), launcher),
        (GPU_CLAIM.path(tenant), order),
    ):
        with pytest.raises(Refused, match="failed calling webhook"):
            await api.create(path, body)

    await others_go_on(program)
    await deletions_end(program, other)

    await program.vm("vm", [("l40s", 1)])
    await eventually(lambda: held_up(program, "vm"), "the VM says that its start is held up")
    await program.processes.revive("webhooks")
    assert await program.running("vm") == "n1"
    for name in ("plain", "unlabelled-launcher"):
        await api.delete(POD.path(tenant, name), gracePeriodSeconds="0")


async def others_go_on(program: Stack) -> None:
    """Create what is none of our business: pods, our own among them, a DaemonSet, a VM without GPUs, heartbeats."""
    api, tenant = program.api, program.tenant
    await api.create(POD.path(tenant), pod("plain"))
    await api.create(POD.path(tenant), pod("unlabelled-launcher", **{KUBEVIRT_LABEL: LAUNCHER_VALUE}))
    for name, labels in (("controller", {}), ("referring", {REFERENCE_LABEL: REFERENCE_VALUE})):
        await eventually(partial(created, program, name, labels), f"the pod {name} is created beside our own")
    await daemon_runs(program)
    plain = vm_body("plain", [])
    plain["spec"]["template"].pop("metadata")
    await api.create(VM.path(tenant), plain)
    assert await program.running("plain") == "n1"
    await api.patch(NODE.path(name="n1") + "/status", {"status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}}})
    lease = {"metadata": {"name": f"n1-{tenant}"}, "spec": {"holderIdentity": "n1"}}
    await api.create(LEASE.path("kube-node-lease"), lease)
    await api.delete(LEASE.path("kube-node-lease", f"n1-{tenant}"))


async def deletions_end(program: Stack, other: str) -> None:
    """Delete a claim, and another tenant's namespace with one; the binder writes finalizers as ever."""
    api, mine = program.api, GPU_CLAIM.path(program.tenant, "mine")
    # The binder lets go of what is deleted, and puts its finalizer back on what nobody deletes.
    await api.patch(mine, {"metadata": {"finalizers": None}})
    await api.until(mine, lambda found: found is not None and CLAIM_FINALIZER in finalizers(found), SECONDS)
    await api.delete(mine)
    await api.until(mine, lambda found: found is None, SECONDS)
    await api.delete(NAMESPACE.path(name=other))
    await api.until(NAMESPACE.path(name=other), lambda found: found is None, SECONDS)


async def created(program: Stack, name: str, labels: dict[str, str]) -> bool:
    """Say whether a pod could be created in our namespace: its service account may be a moment away."""
    try:
        await program.api.create(POD.path(program.system), pod(name, **labels))
    except Refused as refused:
        if "webhook" in str(refused):
            raise
        return False
    return True


def finalizers(found: dict[str, Any]) -> list[str]:
    """Return an object's finalizers."""
    return list(found["metadata"].get("finalizers") or ())


async def daemon_runs(program: Stack) -> None:
    """Have Kubernetes' own controller make a DaemonSet's pod for the node."""
    path, labels = DAEMON_SETS.format(program.tenant), {"app": "daemon"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await program.api.create(path, {"metadata": {"name": "daemon"}, "spec": spec})

    async def made() -> bool:
        listed = await program.api.get(f"{POD.path(program.tenant)}?labelSelector=app%3Ddaemon")
        return bool(listed["items"])

    await eventually(made, "the DaemonSet has a pod")
    await program.api.delete(f"{path}/daemon")


async def held_up(program: Stack, name: str) -> bool:
    """Say whether a VM's condition tells that the webhook could not be asked."""
    found = await program.api.get(VM.path(program.tenant, name))
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any("failed calling webhook" in one.get("message", "") for one in conditions if one["type"] == "Failure")
