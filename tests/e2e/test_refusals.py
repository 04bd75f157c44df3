"""What the API server tells who starts a VM that can't have its GPUs: one sentence, the same whoever asks."""

from typing import Any

import pytest

from schemas.kinds import GPU_CLASS, POD, VMI
from schemas.names import GATE, GPUS_ANNOTATION, KUBEVIRT_LABEL, LAUNCHER_VALUE, REFERENCE_LABEL, REFERENCE_VALUE
from tests.cluster.api import Refused
from tests.cluster.nodes import H100, L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates

Object = dict[str, Any]


def vmi(text: str, name: str = "vm", **devices: object) -> Object:
    """A VMI that asks for what `text` says."""
    marks = {"labels": {REFERENCE_LABEL: REFERENCE_VALUE}, "annotations": {GPUS_ANNOTATION: text}}
    spec = {"domain": {"memory": {"guest": "1Gi"}, "devices": devices}}
    return {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": {"name": name, **marks}, "spec": spec}


async def refusal(program: Stack, body: Object) -> Refused:
    """Return how a VMI is refused, created by hand and tried dry alike (A9)."""
    with pytest.raises(Refused) as dry:
        await program.api.create(VMI.path(program.tenant), body, dryRun="All")
    with pytest.raises(Refused) as caught:
        await program.api.create(VMI.path(program.tenant), body)
    assert dry.value.status["message"] == caught.value.status["message"]
    return caught.value


async def test_what_a_tenant_reads_when_a_start_is_refused(program: Stack) -> None:
    """A3, A7: VMI, class, entry and field stand in the sentence that `kubectl create` prints; nothing is left."""
    await program.gpu_class("l40s", L40S)
    missing = await refusal(program, vmi('[{"className":"a100"}]'))
    malformed = await refusal(program, vmi('[{"className":"l40s"},{"className":"l40s","count":"two"}]'))
    no_list = await refusal(program, vmi("l40s"))
    own = await refusal(program, vmi('[{"className":"l40s"}]', gpus=[{"name": "mine", "deviceName": L40S}]))

    told = [str(one.status["message"]) for one in (missing, malformed, no_list, own)]
    for sentence in told:
        assert sentence.startswith('admission webhook "')
        assert f"VMI {program.tenant}/vm " in sentence
    assert "a100" in told[0]
    assert "does not exist" in told[0]
    assert "entry 1 (counted from 0), field count" in told[1]
    assert GPUS_ANNOTATION in told[1]
    assert GPUS_ANNOTATION in told[2]
    assert "GPU devices of its own" in told[3]
    assert "spec.domain.devices.gpus" in told[3]
    assert await program.api.find(VMI.path(program.tenant, "vm")) is None
    assert await program.claims() == []


async def test_a_vm_that_was_refused_starts_once_its_class_exists(program: Stack) -> None:
    """A3, A9: KubeVirt is told why and tries again; a refused start leaves no trace."""
    await program.node("n1", {L40S: 1})
    await program.vm("vm", [("l40s", 1)])

    async def told() -> bool:
        listed = await program.api.get(f"/apis/kubevirt.io/v1/namespaces/{program.tenant}/virtualmachines/vm")
        conditions = (listed.get("status") or {}).get("conditions") or ()
        return any("l40s" in one.get("message", "") for one in conditions if one["type"] == "Failure")

    await eventually(told, "the VM says why it does not start")
    assert await program.vmi("vm") is None
    assert await program.launchers() == []

    await program.gpu_class("l40s", L40S)
    assert await program.running("vm") == "n1"


async def test_a_class_edited_between_admission_and_gate_keeps_nobody_waiting(parts: Stack) -> None:
    """T24: the launcher asks for what its VMI was admitted with, and is placed by that, whatever its class says now.

    Nobody sees VMI and launcher before the class is edited: ingest stands still meanwhile.
    """
    program = parts
    await program.apart()
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("early", [("l40s", 1)])
    assert await program.running("early") == "n1"
    await program.delete("early")
    program.processes.children["ingest"].pause()
    await program.vm("vm", [("l40s", 1)])
    await eventually(lambda: program.gated("vm"), "the launcher stands behind our gate")
    await program.api.patch(GPU_CLASS.path(name="l40s"), {"spec": {"resourceName": H100}})
    program.processes.children["ingest"].resume()

    assert await program.running("vm") == "n1"
    [claim] = await program.claims("vm")
    assert claim["status"]["resourceName"] == L40S
    await program.vm("late", [("l40s", 1)])
    await program.waiting("late", "NoNodeOffersClass")


async def test_a_pod_that_looks_like_a_launcher_is_refused(program: Stack) -> None:
    """T17, D11: with a launcher's labels and a VMI as its owner, a tenant's pod is not let in, and books nothing."""
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    await program.vm("vm", [("l40s", 1)])
    await program.running("vm")
    found = await program.vmi("vm")
    assert found is not None
    owner = {"apiVersion": VMI.api_version, "kind": VMI.kind, "name": "vm", "uid": found["metadata"]["uid"]}
    labels = {KUBEVIRT_LABEL: LAUNCHER_VALUE, REFERENCE_LABEL: REFERENCE_VALUE}
    metadata = {
        "name": "mine",
        "labels": labels,
        "annotations": {GPUS_ANNOTATION: '[{"className":"l40s"}]'},
        "ownerReferences": [owner | {"controller": True}],
    }
    container = {"name": "c", "image": "none", "resources": {"limits": {L40S: "1"}}}
    pod: Object = {"metadata": metadata, "spec": {"containers": [container]}}

    with pytest.raises(Refused, match="was not created by KubeVirt"):
        await program.api.create(POD.path(program.tenant), pod)
    # Without the mark it is no launcher but a pod like others, and no gate of ours comes onto it.
    metadata["labels"] = {KUBEVIRT_LABEL: LAUNCHER_VALUE}
    made = await program.api.create(POD.path(program.tenant), pod)
    assert GATE not in gates(made)
    await program.api.delete(POD.path(program.tenant, "mine"), gracePeriodSeconds="0")
    assert len(await program.claims()) == 1
    assert await program.bound("vm") == ["n1"]
