"""Deletions end, whatever is switched off: namespaces with their claims, classes after what uses them (F1, K2)."""

import asyncio
from pathlib import Path

from deploy.local import LocalNats
from schemas.kinds import CONFIGMAP, CRD, GPU_CLAIM, GPU_CLASS, NAMESPACE
from schemas.names import CLAIM_FINALIZER, SETTING_ENABLED, SETTINGS_CONFIGMAP
from tests.cluster.api import Api
from tests.cluster.controlplane import ControlPlane
from tests.cluster.fixtures import KUBEVIRT_KINDS
from tests.cluster.nodes import L40S, Nodes
from tests.e2e.process import ALL
from tests.e2e.stack import Stack, stack
from tests.e2e.tenant import SECONDS, eventually


async def switch_off(program: Stack) -> None:
    """Turn the feature off: the binder runs and places nothing."""
    body = {"metadata": {"name": SETTINGS_CONFIGMAP}, "data": {SETTING_ENABLED: "false"}}
    await program.api.create(CONFIGMAP.path(program.system), body)


async def test_a_namespace_goes_with_the_feature_off(program: Stack) -> None:
    """C23, F1: orders bound and pending, in a namespace that is deleted, are gone soon, and nothing is placed.

    A gated launcher and its VM go at once.
    """
    other = f"{program.tenant}-other"
    await program.unasked()
    await program.api.create(NAMESPACE.path(), {"metadata": {"name": other}})
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    mine, program.tenant = program.tenant, other
    await program.order("g2", "l40s")
    await program.held("g2", "Bound")
    await program.order("g1", "nosuchclass")
    await program.held("g1", "Pending", "ClassNotFound")
    guarded = [claim["metadata"]["finalizers"] for claim in await program.claims()]
    assert guarded == [[CLAIM_FINALIZER]] * 2
    program.tenant = mine
    await program.vm("vm", [("l40s", 1)])
    await program.waiting("vm", "NoRoom")

    await switch_off(program)
    await program.waiting("vm", "Paused")
    await program.api.delete(NAMESPACE.path(name=other))
    await program.api.until(NAMESPACE.path(name=other), lambda found: found is None, SECONDS)

    assert len(await program.gated("vm")) == 1
    await program.delete("vm")
    await program.order("late", "l40s")
    await program.held("late", "Pending", "Paused")
    await program.verified()


async def test_a_class_waits_for_its_claims_and_goes(program: Stack) -> None:
    """K2, C23: a class that is deleted outlives the claim that counts by it, serves it, and goes with the last one."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2})
    await program.order("mine", "l40s")
    await program.held("mine", "Bound")
    await program.vm("vm", [("l40s", 1)])
    await program.running("vm")

    path = GPU_CLASS.path(name="l40s")
    await program.api.delete(path)
    going = await program.api.find(path)
    assert going is not None
    assert going["metadata"]["deletionTimestamp"]

    # What was given out before stays of use: a VM may be started with it.
    await program.vm("holder", [], held=["mine"])
    assert await program.running("holder") == "n1"
    await program.delete("holder")
    await program.delete("vm")
    assert await program.api.find(path) is not None
    await program.api.delete(GPU_CLAIM.path(program.tenant, "mine"))
    await program.api.until(path, lambda found: found is None, SECONDS)


async def test_an_unused_class_goes_with_the_feature_off(program: Stack) -> None:
    """K2, C23: nobody uses it: its deletion hangs on nothing, and so it is before anything was ever placed."""
    await program.unasked()
    await switch_off(program)
    await program.gpu_class("l40s", L40S)
    await program.order("never", "l40s")
    await program.held("never", "Pending", "Paused")

    path = GPU_CLASS.path(name="l40s")
    await program.api.delete(path)
    await program.api.delete(GPU_CLAIM.path(program.tenant, "never"))
    await program.api.until(path, lambda found: found is None, SECONDS)


async def test_deletions_end_without_kubevirt(
    control_plane: ControlPlane, api: Api, nodes: Nodes, nats: LocalNats, namespace: str, tmp_path: Path
) -> None:
    """C23, C61: KubeVirt is taken away under bound claims: orders get what is freed, claims and classes still go."""
    crds = [crd["metadata"]["name"] for crd in (await api.get(CRD.path()))["items"]]
    theirs = [name for name in crds if name.endswith("kubevirt.io")]
    async with stack(control_plane, api, nodes, nats, namespace, tmp_path, bare=True) as program:
        program.processes.start("gpubinder", ALL)
        await program.gpu_class("l40s", L40S)
        await program.node("n1", {L40S: 2})
        await program.order("mine", "l40s")
        await program.held("mine", "Bound")
        try:
            for name in theirs:
                await api.delete(CRD.path(name=name))
            for name in theirs:
                await api.until(CRD.path(name=name), lambda found: found is None, SECONDS)

            async def told() -> bool:
                sessions = (await program.told()).sessions
                return not any(sessions[kind].served for kind in ("virtualmachines", "virtualmachineinstances"))

            await eventually(told, "the log says that KubeVirt's kinds are not served")
            await program.order("late", "l40s")
            await api.delete(GPU_CLASS.path(name="l40s"))
            await api.delete(GPU_CLAIM.path(namespace, "mine"))
            await api.until(GPU_CLAIM.path(namespace, "mine"), lambda found: found is None, SECONDS)
            assert await api.find(GPU_CLASS.path(name="l40s")) is not None
            assert (await program.held("late", "Bound"))["nodeName"] == "n1"
            await api.delete(GPU_CLAIM.path(namespace, "late"))
            await api.until(GPU_CLASS.path(name="l40s"), lambda found: found is None, SECONDS)
        finally:
            await asyncio.to_thread(control_plane.admin.install, KUBEVIRT_KINDS)
