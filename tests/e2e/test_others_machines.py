"""Machines that ask us for nothing are admitted as they are written, whatever GPUs they name themselves (I2).

Small objects with the traits of KubeVirt's, NVIDIA's and cozystack's own examples.
"""

import pytest

from schemas.events import PodRequest, VmiRequest, decode_event
from schemas.kinds import POD, SECRET, VM, VMI, Resource
from schemas.names import ADMISSION_ANNOTATION, GPUS_ANNOTATION, POLICY_ANNOTATION, REFERENCE_LABEL, REFERENCE_VALUE
from schemas.streams import EVENTS
from tests.cluster.api import Object, Refused
from tests.cluster.nodes import L40S, L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.witness import gates

VM_POOL = Resource("pool.kubevirt.io", "v1beta1", "virtualmachinepools", "VirtualMachinePool", namespaced=True)
CARD, SLICE = {"name": "gpu1", "deviceName": L40S}, {"name": "vgpu1", "deviceName": L40S_24C}
DISK = {"name": "root", "disk": {"bus": "virtio"}, "bootOrder": 1}
ROOT = {"name": "root", "containerDisk": {"image": "registry.example.org/fedora:1"}}
CLOUD_INIT = {"name": "init", "cloudInitNoCloud": {"userData": "#cloud-config\npassword: fedora\n"}}


def template(*gpus: Object, volumes: tuple[Object, ...] = (), disks: tuple[Object, ...] = (), **spec: object) -> Object:
    """Return a machine's labels and spec as the examples have them."""
    devices = {"gpus": list(gpus), "disks": [DISK, *disks], "rng": {}}
    domain = {
        "cpu": {"cores": 4, "sockets": 1},
        "memory": {"guest": "1Gi"},
        "devices": devices,
        "machine": {"type": ""},
    }
    whole = {"domain": domain, "terminationGracePeriodSeconds": 30, "volumes": [ROOT, *volumes], **spec}
    return {"metadata": {"labels": {"app.kubernetes.io/name": "vm-instance", "special": "gpu"}}, "spec": whole}


def untouched(machine: Object, *gpus: Object) -> None:
    """Check that a machine has the GPUs that were written, and nothing of ours."""
    assert machine["spec"]["domain"]["devices"].get("gpus", []) == list(gpus)
    assert POLICY_ANNOTATION not in machine["metadata"].get("annotations", {})
    assert "gpubinder-licence" not in [volume["name"] for volume in machine["spec"].get("volumes", ())]


async def test_examples_are_admitted_as_written(program: Stack) -> None:
    """A card, a slice with a licence disk of the tenant's own, a bare VMI, a pool: they run, and nothing is ours."""
    api, tenant = program.api, program.tenant
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 2, L40S_24C: 1})
    before = (await program.journal.info(EVENTS)).last
    licence = {"name": "licence", "secret": {"secretName": "own-licence", "volumeLabel": "VGPULIC"}}
    await api.create(SECRET.path(tenant), {"metadata": {"name": "own-licence"}, "data": {"gridd.conf": "VA=="}})
    card = template(CARD)
    sliced = template(SLICE, volumes=(licence,), disks=({"name": "licence", "cdrom": {"bus": "sata"}},))
    for name, body in (("vm-instance-demo", card), ("vgpu-vm", sliced)):
        head = {"apiVersion": VM.api_version, "kind": VM.kind, "metadata": {"name": name}}
        await api.create(VM.path(tenant), head | {"spec": {"runStrategy": "Always", "template": body}})
    bare = template(CARD, volumes=(CLOUD_INIT,))
    head = {"apiVersion": VMI.api_version, "kind": VMI.kind}
    made = await api.create(
        VMI.path(tenant), head | {"metadata": bare["metadata"] | {"name": "vmi-gpu"}, "spec": bare["spec"]}
    )
    untouched(made, CARD)

    for name, gpu in (("vm-instance-demo", CARD), ("vgpu-vm", SLICE), ("vmi-gpu", CARD)):
        assert await program.running(name) == "n1"
        vmi = await program.vmi(name)
        assert vmi is not None
        untouched(vmi, gpu)
        [pod] = await program.launchers(name)
        assert gates(pod) == []
        assert ADMISSION_ANNOTATION not in pod["metadata"]["annotations"]
    assert await program.claims() == []
    await api.delete(VMI.path(tenant, "vmi-gpu"))
    last = (await program.journal.info(EVENTS)).last
    seen = [await program.journal.get(EVENTS, sequence) for sequence in range(before + 1, last + 1)]
    assert not [one for one in seen if one and isinstance(decode_event(one.body), VmiRequest | PodRequest)]


async def test_what_kubevirt_alone_understands_passes(program: Stack) -> None:
    """A pool without GPUs and a VMI that claims a device by Kubernetes' own resource claims: stored as written."""
    api, tenant = program.api, program.tenant
    selector = {"kubevirt.io/vmpool": "cirros"}
    inside = {"metadata": {"labels": selector}, "spec": template()["spec"]}
    machine = {"metadata": {"labels": selector}, "spec": {"runStrategy": "Halted", "template": inside}}
    spec = {"replicas": 3, "selector": {"matchLabels": selector}, "virtualMachineTemplate": machine}
    pool = {"apiVersion": VM_POOL.api_version, "kind": VM_POOL.kind, "metadata": {"name": "cirros"}, "spec": spec}
    made = await api.create(VM_POOL.path(tenant), pool)
    claimed = {"name": "example-gpu", "claimName": "pgpu", "requestName": "pgpu"}
    claims = [{"name": "pgpu", "resourceClaimTemplateName": "pgpu-template"}]
    dra = template(claimed, resourceClaims=claims)
    head = {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": {"name": "dra"}}
    shown = await api.create(VMI.path(tenant), head | {"spec": dra["spec"]}, dryRun="All")

    assert made["spec"]["replicas"] == 3
    assert shown["spec"]["domain"]["devices"]["gpus"] == [claimed]
    assert await api.find(POD.path(tenant, "dra")) is None
    await api.delete(VM_POOL.path(tenant, "cirros"))


async def test_the_same_machines_may_ask_for_classes_instead(program: Stack) -> None:
    """A1, A7, L5: entries come in the place of the machine's own devices, beside them it is refused; its disks stay."""
    await program.entitle()
    await program.gpu_class("card", L40S)
    await program.gpu_class("slice", L40S_24C, "VGPU", license={"secretName": "lic"})
    licence = {"name": "licence", "secret": {"secretName": "own-licence", "volumeLabel": "VGPULIC"}}
    sliced = template(SLICE, volumes=(licence,), disks=({"name": "licence", "cdrom": {"bus": "sata"}},))
    for machine, name, device in ((template(CARD, volumes=(CLOUD_INIT,)), "card", L40S), (sliced, "slice", L40S_24C)):
        labels = machine["metadata"]["labels"] | {REFERENCE_LABEL: REFERENCE_VALUE}
        marks = {"name": "asks", "labels": labels, "annotations": {GPUS_ANNOTATION: f'[{{"className":"{name}"}}]'}}
        body: Object = {"apiVersion": VMI.api_version, "kind": VMI.kind, "metadata": marks, "spec": machine["spec"]}
        devices = body["spec"]["domain"]["devices"]
        with pytest.raises(Refused, match="lists GPU devices of its own"):
            await program.api.create(VMI.path(program.tenant), body, dryRun="All")
        own = [volume["name"] for volume in body["spec"]["volumes"]]
        devices.pop("gpus")

        made = (await program.api.create(VMI.path(program.tenant), body, dryRun="All"))["spec"]

        assert [gpu["deviceName"] for gpu in made["domain"]["devices"]["gpus"]] == [device]
        ours = ["gpubinder-licence"] if name == "slice" else []
        assert [volume["name"] for volume in made["volumes"]] == own + ours
        disks = [disk["name"] for disk in made["domain"]["devices"]["disks"]]
        assert disks[: len(devices["disks"])] == [disk["name"] for disk in devices["disks"]]
        assert disks[-1:] == ours or not ours
