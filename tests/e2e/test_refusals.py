"""What the API server tells who starts a VM that can't have its GPUs: one sentence, the same whoever asks."""

from typing import Any

import msgspec
import pytest

from schemas.admission import VMI_WEBHOOK
from schemas.kinds import GPU_CLAIM, GPU_CLASS, KUBEVIRT, POD, VMI
from schemas.names import (
    EPHEMERAL_ANNOTATION,
    GATE,
    GPUS_ANNOTATION,
    KUBEVIRT_LABEL,
    LAUNCHER_VALUE,
    MIGRATION_LABEL,
    REFERENCE_LABEL,
    REFERENCE_VALUE,
)
from tests.cluster.api import Refused
from tests.cluster.kubevirt import HOME as KUBEVIRT_HOME
from tests.cluster.nodes import H100, L40S, L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.witness import gates
from tests.webhooks.test_forgeries import merged

Object = dict[str, Any]
ALIEN = "nvidia.com/GA100_A100"


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


class Faulty(msgspec.Struct, frozen=True):
    """A VMI with one fault, and how its refusal goes on after the VMI's name. `change`: what is merged into it."""

    reason: str
    says: str
    gpus: str = '[{"className":"l40s"}]'
    change: Object = {}


def domain(**fields: Any) -> Object:  # noqa: ANN401 - any JSON
    """Return a change of spec.domain."""
    return {"spec": {"domain": fields}}


FAULTS = {
    "A3 conflict": Faulty(
        "ResourceNameConflict",
        f'names the GPU class "twin" in entry 1, whose resource name {L40S} belongs to an older class ("l40s") '
        '(ResourceNameConflict): choose that class, or ask the platform operator to give "twin" a resource name of its '
        "own",
        '[{"className":"l40s"},{"className":"twin"}]',
    ),
    "A3 goes": Faulty(
        "ClassBeingDeleted",
        'names the GPU class "old" in entry 0, which is being deleted: choose another class',
        '[{"className":"old"}]',
    ),
    "A3 held claim": Faulty(
        "ClaimNotFound",
        'names the held claim "none" in entry 0, which does not exist: choose one that `kubectl get gpuclaims -n '
        "{tenant}` lists",
        '[{"claimName":"none"}]',
    ),
    "A3 held claim goes": Faulty(
        "ClaimBeingDeleted",
        'names the held claim "leaving" in entry 0, which is being deleted: name another claim',
        '[{"claimName":"leaving"}]',
    ),
    "a template's claim": Faulty(
        "TemplateClaim",
        'names the claim "{template}" in entry 0, which was made for another VM and goes with it: name its class '
        '"l40s" with className instead, or a claim of your own',
        '[{"claimName":"{template}"}]',
    ),
    "A4 mix": Faulty(
        "VGPUClassesMixed",
        'names the vGPU classes "slice" and "half" together: one VM can have one vGPU class only, keep one of them',
        '[{"className":"slice"},{"className":"half"}]',
    ),
    "A4 maximum": Faulty(
        "OverMaximumCount",
        'asks for 3 units of the GPU class "slice" in entry 0, of which one VM can have 2 at most: lower count to 2',
        '[{"className":"slice","count":3}]',
    ),
    "A5": Faulty(
        "NoVGPUEntitlement",
        'names the GPU class "slice" in entry 0, a class of vGPUs, which namespace {tenant} may not have: its label '
        'cozystack.io/vgpu is not "true"; choose a class of whole GPUs, or ask the platform operator for the label',
        '[{"className":"slice"}]',
    ),
    "A6, C49": Faulty(
        "NotPermittedByKubeVirt",
        f'names the GPU class "alien" in entry 0, whose resource {ALIEN} is not in KubeVirt\'s permittedHostDevices: '
        "the platform operator has to add it to the KubeVirt resource first",
        '[{"className":"alien"}]',
    ),
    "A7, C48 host device": Faulty(
        "OwnGPUEntries",
        f'lists the host device {L40S}, which is handed out as the GPU class "l40s": remove it from '
        f"spec.domain.devices.hostDevices and name the class in {GPUS_ANNOTATION}",
        change=domain(devices={"hostDevices": [{"name": "h", "deviceName": L40S}]}),
    ),
    "A2, C48 limit": Faulty(
        "ResourceKey",
        f'requests {L40S} under spec.domain.resources, which is handed out as the GPU class "l40s": remove the key; '
        f"the entries of {GPUS_ANNOTATION} are what the launcher requests",
        change=domain(resources={"limits": {L40S: "1"}}),
    ),
    "C26 prefix": Faulty(
        "ReservedMark",
        "lists GPU devices named gpubinder-..., a reserved prefix, that differ from what the annotation "
        f"{GPUS_ANNOTATION} gives: remove them from spec.domain.devices.gpus",
        change=domain(devices={"gpus": [{"name": "gpubinder-0-0", "deviceName": H100}]}),
    ),
    "C26 licence": Faulty(
        "ReservedMark",
        "has a volume or a disk named gpubinder-licence, a reserved name, that differs from the licence's: give yours "
        "another name",
        change={"spec": {"volumes": [{"name": "gpubinder-licence", "emptyDisk": {"capacity": "1Gi"}}]}},
    ),
    "KubeVirt's label": Faulty(
        "ReservedMark",
        f"carries label {MIGRATION_LABEL}, which KubeVirt alone may put on launchers: remove it from the template's "
        "metadata",
        change={"metadata": {"labels": {MIGRATION_LABEL: "m"}}},
    ),
    "KubeVirt's annotation": Faulty(
        "ReservedMark",
        f"carries annotation {EPHEMERAL_ANNOTATION}, which KubeVirt alone may put on launchers: remove it from the "
        "template's metadata",
        change={"metadata": {"annotations": {EPHEMERAL_ANNOTATION: ""}}},
    ),
}


async def test_each_refusal_is_the_sentence_that_kubectl_shows(program: Stack) -> None:
    """A2-A9, C26, C48, C49: every fault of a start, dry or not: rule, class, entry, numbers and remedy, to the letter.

    The table of permitted devices is read for each start: what it lacked is admitted as soon as it has it.
    """
    api, tenant = program.api, program.tenant
    await program.node("n1", {L40S: 2})
    for name, resource, mode in (("l40s", L40S, "Passthrough"), ("twin", L40S, "Passthrough")):
        await program.gpu_class(name, resource, mode)
    await program.gpu_class("slice", L40S_24C, "VGPU", maxCount=2)
    await program.gpu_class("half", "nvidia.com/L40S-48C", "VGPU")
    await program.gpu_class("alien", ALIEN)
    await program.gpu_class("old", H100)
    await program.order("leaving", "l40s")
    await program.vm("other", [("l40s", 1)])
    assert await program.bound("other") == ["n1"]
    [made] = await program.claims("other")
    going = (GPU_CLASS.path(name="old"), GPU_CLAIM.path(tenant, "leaving"))
    for path in going:
        await api.patch(path, {"metadata": {"finalizers": ["example.org/held"]}})
        await api.delete(path)

    def named(text: str) -> str:
        return text.replace("{tenant}", tenant).replace("{template}", made["metadata"]["name"])

    for name, fault in FAULTS.items():
        said = await refusal(program, merged(vmi(named(fault.gpus)), fault.change))
        assert (said.code, said.status["reason"]) == (403, fault.reason), (name, said)
        denied = f'admission webhook "{VMI_WEBHOOK}" denied the request: VMI {tenant}/vm '
        assert said.status["message"] == denied + named(fault.says), name
    half = vmi('[{"className":"l40s"}]')
    del half["metadata"]["annotations"]
    assert f"but not the annotation {GPUS_ANNOTATION}" in (await refusal(program, half)).status["message"]

    kubevirt = KUBEVIRT.path(KUBEVIRT_HOME, "kubevirt")
    table = (await api.get(kubevirt))["spec"]["configuration"]["permittedHostDevices"]
    card = {"pciVendorSelector": "10DE:20B0", "resourceName": ALIEN, "externalResourceProvider": True}
    devices = {"permittedHostDevices": {"pciHostDevices": [*table["pciHostDevices"], card]}}
    await api.patch(kubevirt, {"spec": {"configuration": devices}})
    shown = await api.create(VMI.path(tenant), vmi('[{"className":"alien"}]'), dryRun="All")
    assert shown["spec"]["domain"]["devices"]["gpus"] == [{"name": "gpubinder-0-0", "deviceName": ALIEN}]
    assert await api.find(VMI.path(tenant, "vm")) is None
    for path in going:
        await api.patch(path, {"metadata": {"finalizers": None}})


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
