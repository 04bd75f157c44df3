"""Every mark that is not a tenant's to write, tried by a tenant in every way there is, on a real API server (N4).

The tenant may do everything in its namespace. Each attempt ends refused, with the text that kubectl would show, or
without effect, because what was written is overwritten or ignored.
"""

import copy
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from schemas.admission import BINDING
from schemas.kinds import GPU_CLAIM, POD, SECRET, VMI
from tests.cluster.api import APPLY, JSON_PATCH, MERGE, Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.webhooks.guarding import Guarded, denied, guarded
from tests.webhooks.test_on_api_server import Front, front, machine, owned

DRY = {"dryRun": "All"}
BUDGETS = "/apis/cozystack.io/v1alpha1/namespaces/{}/gpubudgets"
LABEL, ANNOTATION = "labels", "annotations"
TEMPLATE, FINALIZER = "cozystack.io/gpu-template-claim", "cozystack.io/gpu-claim"
GPUS, POLICY, ADMISSION = "cozystack.io/gpus", "cozystack.io/gpu-start-policy", "cozystack.io/gpu-admission"
REFERENCE, COPY = "cozystack.io/gpu-reference", "cozystack.io/gpu-class"
MIGRATION, EPHEMERAL, CREATED_BY = (
    "kubevirt.io/migrationJobUID",
    "kubevirt.io/ephemeral-provisioning",
    "kubevirt.io/created-by",
)
GREEDY = '[{"className":"l40s-24c","count":9}]'


class Change(msgspec.Struct, frozen=True):
    """One forgery on an object that stands: where, what is merged into it, and who says no in which words.

    `by`: the policy; '' for the API server itself.
    """

    on: str
    change: Object
    by: str
    words: str
    below: str = ""


def meta(field: str, key: str, value: object) -> Object:
    """Return a change of one label or annotation."""
    return {"metadata": {field: {key: value}}}


STAYS = "stays as it was admitted: change the template of the virtual machine and restart it"
KUBEVIRTS = "are KubeVirt's alone: start a virtual machine instead"
CHANGES = (
    Change("claim", meta(LABEL, TEMPLATE, None), "claims", "leave it as it is"),
    Change("claim", {"metadata": {"finalizers": []}}, "claims", "put on and taken off by gpubinder alone"),
    Change("claim", {"status": {"phase": "Lost"}}, "status", "shows what gpubinder decided", "status"),
    Change("secret", {"data": {"client_configuration_token.tok": "VA=="}}, "licences", "a copy of a licence"),
    Change("secret", meta(LABEL, COPY, None), "licences", "a copy of a licence"),
    Change("secret", meta(ANNOTATION, "cozystack.io/gpu-stamp", "9.9.9"), "licences", "a copy of a licence"),
    Change("own-secret", meta(LABEL, COPY, "l40s-24c"), "licences", "leave the label off a Secret of your own"),
    Change("budget", {"spec": {"hard": {"gpus.cozystack.io": 99}}}, "budgets", "set by the platform alone"),
    Change("budget", {"status": {"used": {}}}, "status", "shows what gpubinder decided", "status"),
    Change("vmi", meta(ANNOTATION, GPUS, GREEDY), "vmis", STAYS),
    Change("vmi", meta(ANNOTATION, POLICY, "Schedule"), "vmis", STAYS),
    Change("vmi", meta(LABEL, REFERENCE, None), "vmis", STAYS),
    *(
        Change("launcher", change, by, words, below)
        for below in ("", "status")
        for change, by, words in (
            (meta(ANNOTATION, GPUS, GREEDY), "pods", STAYS),
            (meta(ANNOTATION, POLICY, "Schedule"), "pods", STAYS),
            (meta(ANNOTATION, ADMISSION, "another"), "pods", STAYS),
            (meta(LABEL, REFERENCE, None), "pods", STAYS),
            (meta(LABEL, "kubevirt.io", None), "launchers", KUBEVIRTS),
            (meta(LABEL, CREATED_BY, "u9"), "launchers", KUBEVIRTS),
            (meta(LABEL, MIGRATION, "m9"), "launchers", KUBEVIRTS),
            (meta(ANNOTATION, EPHEMERAL, "true"), "launchers", KUBEVIRTS),
            # A mark with an empty value is there as well.
            (meta(LABEL, MIGRATION, ""), "launchers", KUBEVIRTS),
        )
    ),
    Change("launcher", {"spec": {"schedulingGates": []}}, "gates", "taken off by gpubinder alone"),
    Change("pod", meta(LABEL, "kubevirt.io", "virt-launcher"), "launchers", KUBEVIRTS),
    Change("pod", meta(LABEL, REFERENCE, "true"), "pods", STAYS),
)


class Stage:
    """What stands: one object of each kind by a short name, as its collection and itself."""

    def __init__(self, here: Guarded, desk: Front) -> None:
        self.here, self.desk = here, desk
        self.there: dict[str, tuple[str, Object]] = {}

    async def add(self, name: str, by: Api, collection: str, body: Object) -> None:
        """Have somebody who may create an object."""
        self.there[name] = collection, await by.create(collection, body)

    def path(self, change: Change) -> str:
        """Return where a change is tried."""
        collection, body = self.there[change.on]
        return f"{collection}/{body['metadata']['name']}" + (f"/{change.below}" if change.below else "")


@pytest.fixture
async def stage(control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """An API server with policies and webhooks, and objects that others wrote in the tenant's namespace."""
    async with guarded(control_plane, api, namespace) as here, front(control_plane, api, namespace, tmp_path) as desk:
        settings = f"/api/v1/namespaces/{here.system}/configmaps/gpubinder-settings"
        await api.patch(settings, {"data": {"kubevirtNamespace": "kubevirt"}})
        found = Stage(here, desk)
        marked = {"name": "vm1-0", "labels": {TEMPLATE: "true"}, "finalizers": [FINALIZER]}
        await found.add("claim", here.ours, GPU_CLAIM.path(namespace), claim(marked))
        copied = {"name": "gpu-licence-l40s-24c", "labels": {COPY: "l40s-24c"}}
        token = {"client_configuration_token.tok": "UEE="}
        await found.add("secret", here.ours, SECRET.path(namespace), {"metadata": copied, "data": token})
        await found.add("own-secret", here.tenant, SECRET.path(namespace), {"metadata": {"name": "own"}, "data": token})
        await found.add("budget", api, BUDGETS.format(namespace), budget("quota"))
        pod = await owned(desk, "vm1")
        stored = await api.get(f"{VMI.path(namespace)}/vm1")
        found.there["vmi"] = VMI.path(namespace), stored
        await found.add("launcher", here.kubevirt, POD.path(namespace), pod)
        plain = {"metadata": {"name": "plain"}, "spec": pod["spec"]}
        await found.add("pod", here.tenant, POD.path(namespace), plain)
        yield found
        await here.ours.patch(found.path(Change("claim", {}, "", "")), {"metadata": {"finalizers": None}})
        await api.delete(POD.path(namespace), gracePeriodSeconds="0")
        await api.delete(VMI.path(namespace))


def claim(metadata: Object) -> Object:
    """Return an order with this metadata."""
    head = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind}
    return {**head, "metadata": metadata, "spec": {"className": "l40s-24c", "count": 1}}


def budget(name: str) -> Object:
    """Return a budget of one unit."""
    head = {"apiVersion": "cozystack.io/v1alpha1", "kind": "GPUBudget", "metadata": {"name": name}}
    return {**head, "spec": {"hard": {"gpus.cozystack.io": 1}}}


def refusal(by: str, said: str) -> bool:
    """Say whether a text is this policy's refusal, as the API server words it."""
    name = f"{by}.gpubinder.cozystack.io"
    return f"is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: " in said


async def test_no_mark_that_stands_is_changed(stage: Stage) -> None:
    """N4: labels, annotations, finalizers, statuses, copies, budgets and the gate, by patch and by update."""
    tenant = stage.here.tenant
    for change in CHANGES:
        path = stage.path(change)
        body = merged(await stage.here.admin.get(path.removesuffix("/status")), change.change)
        for attempt in (
            partial(tenant.patch, path, change.change, content=MERGE, **DRY),
            partial(tenant.replace, path, body, **DRY),
        ):
            said = await denied(attempt)
            assert refusal(change.by, said), (change, said)
            assert change.words in said, (change, said)


def merged(body: Object, change: Object) -> Object:
    """Return an object with a merge patch applied."""
    made = copy.deepcopy(body)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return made


async def test_no_mark_is_applied(stage: Stage) -> None:
    """N4: server-side apply, which takes fields over by force, changes none of them either."""
    # Apply takes away only what the same manager wrote before.
    for change in (one for one in CHANGES if not removes(one.change)):
        _, body = stage.there[change.on]
        head = {"apiVersion": body.get("apiVersion", "v1"), "kind": body["kind"]}
        whole = merged({**head, "metadata": {"name": body["metadata"]["name"]}}, change.change)
        options = {"content": APPLY, "fieldManager": "tenant", "force": "true"}
        said = await denied(partial(stage.here.tenant.patch, stage.path(change), whole, **options, **DRY))
        assert refusal(change.by, said), (change, said)
        assert change.words in said, (change, said)


def removes(change: object) -> bool:
    """Say whether a change takes something away."""
    return any(map(removes, change.values())) if isinstance(change, dict) else not change


async def test_no_mark_is_put_on_at_create(stage: Stage) -> None:
    """N4: what a tenant creates with marks of others is refused, by a policy or by the webhook that reads it."""
    here, namespace = stage.here, stage.here.namespace
    _, launcher = stage.there["launcher"]
    spec = {"containers": [{"name": "c", "image": "none"}]}
    forged = machine("forged")
    forged["spec"]["domain"]["devices"]["gpus"] = [{"name": "gpubinder-0-0", "deviceName": "nvidia.com/other"}]
    migrating, early = machine("migrating"), machine("early")
    migrating["metadata"]["labels"] |= {MIGRATION: "m1"}
    early["metadata"]["annotations"] |= {EPHEMERAL: "true"}
    posing = {"name": "posing", "labels": {"kubevirt.io": "virt-launcher"}}
    marks = {key: launcher["metadata"][key] for key in (LABEL, ANNOTATION, "ownerReferences")}
    creates: tuple[tuple[str, Object, str], ...] = (
        (GPU_CLAIM.path(namespace), claim({"name": "c", "labels": {TEMPLATE: "true"}}), "leave it as it is"),
        (GPU_CLAIM.path(namespace), claim({"name": "c", "labels": {TEMPLATE: ""}}), "leave it as it is"),
        (GPU_CLAIM.path(namespace), claim({"name": "c", "finalizers": [FINALIZER]}), "by gpubinder alone"),
        (SECRET.path(namespace), {"metadata": {"name": "s", "labels": {COPY: "l40s"}}}, "a copy of a licence"),
        (BUDGETS.format(namespace), budget("mine"), "set by the platform alone"),
        (VMI.path(namespace), forged, "gpubinder-"),
        (VMI.path(namespace), migrating, MIGRATION),
        (VMI.path(namespace), early, EPHEMERAL),
        (POD.path(namespace), {"metadata": posing, "spec": spec}, KUBEVIRTS),
        (POD.path(namespace), {"metadata": {"name": "twin", **marks}, "spec": spec}, "was not created by KubeVirt"),
    )
    for collection, body, words in creates:
        with pytest.raises(Refused) as refused:
            await here.tenant.create(collection, body, **DRY)
        assert refused.value.code == 403, (body, refused.value)
        assert words in refused.value.status["message"], (body, refused.value)


async def test_what_is_not_refused_is_overwritten(stage: Stage) -> None:
    """N4, T25: a forged start policy and admission stamp are replaced; a status at create is nobody's."""
    here, namespace = stage.here, stage.here.namespace
    forged = machine("forged")
    forged["metadata"]["annotations"] |= {POLICY: "Schedule"}
    made = await here.tenant.create(VMI.path(namespace), forged, **DRY)
    order = await here.tenant.create(GPU_CLAIM.path(namespace), claim({"name": "c"}) | {"status": {"phase": "Bound"}})
    pod = await owned(stage.desk, "vm2")
    pod["metadata"]["annotations"] |= {ADMISSION: "forged", POLICY: "Wait"}
    admitted = await here.kubevirt.create(POD.path(namespace), pod, **DRY)

    assert made["metadata"]["annotations"][POLICY] == "Wait"
    assert order.get("status", {}).get("phase") != "Bound"
    assert admitted["metadata"]["annotations"][ADMISSION] not in {"", "forged"}


async def test_other_doors_to_a_pod_lead_nowhere(stage: Stage) -> None:
    """N4: a Binding's labels and annotations, which are copied onto the pod, and the lists of debug containers."""
    here = stage.here
    path = stage.path(Change("launcher", {}, "", ""))
    name = path.rpartition("/")[2]
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    for field, key in (
        *((ANNOTATION, key) for key in (GPUS, POLICY, ADMISSION, EPHEMERAL)),
        *((LABEL, key) for key in (REFERENCE, "kubevirt.io", CREATED_BY, MIGRATION)),
    ):
        for door, value in ((f"{path}/binding", "x"), (f"{path}/binding", ""), (BINDING.path(here.namespace), "x")):
            marks = {"metadata": {"name": name, field: {key: value}}, "target": target}

            said = await denied(partial(here.tenant.create, door, marks, **DRY))
            assert refusal("bindings", said), (door, key, said)
    with pytest.raises(Refused, match="schedulingGates"):
        await here.tenant.create(f"{path}/binding", {"metadata": {"name": name}, "target": target}, **DRY)
    before = await here.admin.get(path)
    debugger = [{"op": "add", "path": "/spec/ephemeralContainers", "value": [{"name": "debug", "image": "none"}]}]
    forged = [{"op": "add", "path": "/metadata/annotations/cozystack.io~1gpus", "value": GREEDY}]
    shown = await here.tenant.patch(f"{path}/ephemeralcontainers", [*debugger, *forged], content=JSON_PATCH)
    assert shown["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert shown["spec"]["schedulingGates"] == before["spec"]["schedulingGates"]
