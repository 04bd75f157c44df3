"""What is done to an installation that works, and what must hold then: known faults of others, through the chart.

Node n1 offers two units of the class l40s, the VM `vm` has one of them: the other one is what is fought over. Each
leaves things as they were.
"""

import asyncio
import json
import ssl

import pytest
from cryptography import x509

from deploy.role_names import Role
from schemas.kinds import GPU_CLAIM, NAMESPACE, NODE, POD, SECRET, VM, VMI, WORKLOAD
from schemas.names import REFERENCE_LABEL, REFERENCE_VALUE, WEBHOOK_TLS_SECRET
from tests.chart.release import NAMESPACE as HOME
from tests.chart.release import SECONDS, TENANT, Release
from tests.cluster.api import Object, Refused
from tests.e2e.asking import asking
from tests.e2e.tenant import Tenant, eventually, vm_body
from tests.e2e.witness import gates

WORKERS = (Role.BINDER, Role.INGEST, Role.PROJECTOR)


async def gone(one: Tenant, *vms: str) -> None:
    """Delete VMs and wait until nothing of them is there."""
    for vm in vms:
        await one.delete(vm)
    for vm in vms:
        await one.api.until(VMI.path(TENANT, vm), lambda found: found is None, SECONDS)

    async def no_claims() -> bool:
        return not any([await one.claims(vm) for vm in vms])

    await eventually(no_claims, f"no claim of {vms}", SECONDS)


async def as_it_was(release: Release, one: Tenant) -> None:
    """Take away what a test that failed left: every pod comes back, and `vm` alone is there."""
    release.pods.held.clear()
    release.pods.places.mend()
    vms = [body["metadata"]["name"] for body in (await one.api.get(VM.path(TENANT)))["items"]]
    if "vm" not in vms:
        return  # After the removal, our kinds are gone as well.
    await gone(one, *(vm for vm in vms if vm != "vm"))
    for claim in await one.claims():
        if not claim["metadata"].get("ownerReferences"):
            await one.api.delete(GPU_CLAIM.path(TENANT, claim["metadata"]["name"]))


async def whole(release: Release) -> None:
    """Have the log audited, from the binder's pod: whole, in order, decided as logged, as it was anchored."""
    told = json.loads(await release.pods.exec("binder", "gpubinder", "verify", "--json"))
    assert told["whole"], told
    assert told["anchored"], told


async def leaders_die_after_a_pin(release: Release, one: Tenant) -> None:
    """All leaders die as one of two launchers is let go for the last unit; none of them comes back for now."""
    await asyncio.gather(*(one.vm(vm, [("l40s", 1)]) for vm in ("a", "b")))

    async def let_go() -> list[str]:
        found = {vm: await one.launchers(vm) for vm in ("a", "b")}
        return [vm for vm, pods in found.items() if any(not gates(pod) for pod in pods)]

    leaders = [await release.leader(role) for role in WORKERS]
    [first] = await eventually(let_go, "one of the two launchers is let go", SECONDS)
    release.pods.held.update(WORKERS)
    for pod in leaders:
        pod.child.kill()

    for role, dead in zip(WORKERS, leaders, strict=True):
        assert (await release.leader(role)).name != dead.name
    [second] = {"a", "b"} - {first}
    assert await one.running(first, SECONDS) == "n1"
    assert await one.bound(first) == ["n1"]
    await one.waiting(second, "NoRoom")
    [launcher] = await one.launchers(second)
    assert gates(launcher)
    [claim] = await one.claims(first)

    async def records() -> int:
        return (await recorded(one)).count(claim["metadata"]["uid"])

    await eventually(records, f"the claim of {first} has a usage record", SECONDS)
    assert await records() == 1
    release.pods.held.clear()
    for role in WORKERS:
        await release.ready(role)
    await whole(release)
    await gone(one, "a", "b")


async def recorded(one: Tenant) -> list[str]:
    """Return the uids of what has usage records, once for each record."""
    records = (await one.api.get(WORKLOAD.path(TENANT)))["items"]
    return [owner["uid"] for record in records for owner in record["metadata"].get("ownerReferences") or ()]


async def no_webhook_answers(release: Release, one: Tenant) -> None:
    """Every webhooks pod is down: what names GPUs is refused, what does not goes on; then KubeVirt tries again."""
    api = release.api
    await one.order("kept", "l40s")
    await one.held("kept", "Bound", seconds=SECONDS)
    release.pods.held.add("webhooks")
    for pod in release.pods.of("webhooks"):
        pod.child.kill()
    labelled, plain = _vmi("labelled"), _vmi("plain", labelled=False)
    for path, body in (
        (VMI.path(TENANT), labelled),
        (POD.path(TENANT), _launcher()),
        (GPU_CLAIM.path(TENANT), _order()),
    ):
        with pytest.raises(Refused, match="failed calling webhook"):
            await api.create(path, body, dryRun="All")

    await api.create(VMI.path(TENANT), plain, dryRun="All")
    await api.create(POD.path(TENANT), _pod("plain"), dryRun="All")
    await api.create(POD.path(TENANT), _pod("labelled", {REFERENCE_LABEL: REFERENCE_VALUE}), dryRun="All")
    await api.create("/apis/apps/v1/namespaces/kube-system/daemonsets", _daemon_set(), dryRun="All")
    await api.patch(f"{NODE.path(name='n1')}/status", {"status": {"nodeInfo": {"kernelVersion": "6.1"}}})
    await api.delete(GPU_CLAIM.path(TENANT, "kept"))
    await api.until(GPU_CLAIM.path(TENANT, "kept"), lambda found: found is None, SECONDS)
    await api.create(NAMESPACE.path(), {"metadata": {"name": "goes"}})
    await api.delete(NAMESPACE.path(name="goes"))
    await api.until(NAMESPACE.path(name="goes"), lambda found: found is None, SECONDS)
    standby = release.pods.of("ingest")[0]
    await api.delete(POD.path(HOME, standby.name))
    await release.replaced("ingest", standby.name)
    await one.vm("late", [("l40s", 1)])
    await _failed_to_start(one, "late")

    release.pods.held.clear()
    assert await one.running("late", SECONDS) == "n1"
    await gone(one, "late")


async def _failed_to_start(one: Tenant, vm: str) -> None:
    """Wait until KubeVirt was refused a VMI of a VM."""

    async def refused() -> bool:
        events = (await one.api.get(f"/api/v1/namespaces/{TENANT}/events"))["items"]
        body = await one.api.get(f"/apis/kubevirt.io/v1/namespaces/{TENANT}/virtualmachines/{vm}")
        text = json.dumps([event for event in events if event["involvedObject"]["name"] == vm])
        return "failed calling webhook" in text + json.dumps(body.get("status") or {})

    await eventually(refused, f"KubeVirt was refused a VMI of {vm}", SECONDS)


async def certificate_is_exchanged(release: Release, one: Tenant) -> None:
    """The pair is taken out of its Secret while starts are asked for: all replicas serve a new one, none restarts."""
    path = SECRET.path(HOME, WEBHOOK_TLS_SECRET)
    pods = {pod.name: (pod.child.pid, pod.ports[8443]) for pod in release.pods.of("webhooks")}
    old = await release.api.get(path)

    def serial(port: int) -> int:
        return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode()).serial_number

    async def served() -> set[int]:
        return {await asyncio.to_thread(serial, port) for _, port in pods.values()}

    before = await served()
    async with asking(one, SECONDS) as refused:
        await release.api.patch(path, {"data": {"tls.crt": "", "tls.key": ""}})

        async def exchanged() -> bool:
            now = await served()
            return len(now) == 1 and not now & before

        await eventually(exchanged, "every replica serves the new pair", SECONDS)

    assert not refused
    assert (await release.api.get(path))["data"]["ca.crt"] == old["data"]["ca.crt"]
    assert {pod.name: (pod.child.pid, pod.ports[8443]) for pod in release.pods.of("webhooks")} == pods


def _vmi(name: str, *, labelled: bool = True) -> Object:
    template = vm_body(name, [("l40s", 1)])["spec"]["template"]
    metadata: Object = {"name": name, **(template["metadata"] if labelled else {})}
    return {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": metadata, "spec": template["spec"]}


def _pod(name: str, labels: dict[str, str] | None = None) -> Object:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def _launcher() -> Object:
    return _pod("launcher", {REFERENCE_LABEL: REFERENCE_VALUE, "kubevirt.io": "virt-launcher"})


def _order() -> Object:
    kind = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind}
    return {**kind, "metadata": {"name": "order"}, "spec": {"className": "l40s", "count": 1}}


def _daemon_set() -> Object:
    labels = {"app": "network"}
    template = {"metadata": {"labels": labels}, "spec": _pod("x")["spec"]}
    return {"metadata": {"name": "network"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
