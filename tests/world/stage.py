"""A stage for KubeVirt's behaviour: the model API server, the emulator, and a stranger's hands on both.

Everything written is noted in order; a loop with jumping time makes minutes of back-off pass at once.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from typing_extensions import override

from binder.kube import ApiError, PatchKind
from deploy.world.admission import Hook
from deploy.world.apiserver import ApiServer
from deploy.world.clock import LoopClock
from deploy.world.history import Change
from deploy.world.kubevirt import RESOURCES, KubeVirt, emulator
from deploy.world.manifests import Obj, copied, decode, encode
from deploy.world.store import Listener
from deploy.world.virt_names import CONTROLLER_ACCOUNT, CONTROLLER_REVISION, SECRET, account
from deploy.world.virt_webhooks import VirtApi
from schemas.kinds import EVENT, KUBEVIRT, NAMESPACE, NODE, POD, VM, VMI, Resource

NAMESPACE_NAME = "tenant-a"
CARD = "nvidia.com/AD102GL_L40S"
SLICE = "nvidia.com/NVIDIA_L40S-24C"
GATE = "example.org/gate"
ROOMY = {
    "cpu": "64",
    "memory": "512Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
    "devices.kubevirt.io/kvm": "1k",
    "devices.kubevirt.io/tun": "1k",
    "devices.kubevirt.io/vhost-net": "1k",
}
PATIENCE_S = 2000.0
T = TypeVar("T")


class Stage(Listener):
    """What a scene needs: objects in, objects out, and the list of everything written."""

    def __init__(self, api: ApiServer, kubevirt: KubeVirt) -> None:
        self.api = api
        self.kubevirt = kubevirt
        self.stranger = api.as_user("stranger")
        self.written: list[tuple[str, Obj]] = []
        api.store.listen(self)

    @override
    def changed(self, change: Change) -> None:
        self.written.append((change.type, {"kind": change.resource.kind} | copied(change.object)))

    @override
    def reset(self) -> None:
        self.written.clear()

    async def create(self, resource: Resource, obj: Mapping[str, Any], namespace: str = NAMESPACE_NAME) -> Obj:
        """Create an object as a stranger; return it as stored."""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | dict(obj)
        place = namespace if resource.namespaced else ""
        return decode(await self.stranger.create(resource, place, encode(whole)))

    def find(self, resource: Resource, name: str) -> Obj | None:
        """Return the stored object, or None."""
        change = self.api.store.get(resource, f"{NAMESPACE_NAME}/{name}" if resource.namespaced else name)
        return None if change is None else copied(change.object)

    def all(self, resource: Resource) -> list[Obj]:
        """Return all stored objects of a resource."""
        return [copied(change.object) for change in self.api.store.collection(resource).objects.values()]

    def pods(self, vmi: str) -> list[Obj]:
        """Return the pods of the VMI of that name, whichever of its lives they belong to."""
        return [pod for pod in self.all(POD) if pod["metadata"]["ownerReferences"][0]["name"] == vmi]

    def events(self, reason: str) -> list[str]:
        """Return the notes of all Events with that reason."""
        return [event["note"] for event in self.all(EVENT) if event["reason"] == reason]

    async def until(self, look: Callable[[], T], *, patience_s: float = PATIENCE_S) -> T:
        """Wait until `look` returns something true, and return that."""
        start = asyncio.get_running_loop().time()
        end = start + patience_s
        while not (found := look()):
            if asyncio.get_running_loop().time() > end:
                raise AssertionError("waited in vain; last written: " + "; ".join(map(brief, self.written[-8:])))
            # Minutes of back-off pass in big steps, what happens at once is seen at once.
            await asyncio.sleep(0.01 if asyncio.get_running_loop().time() < start + 1 else 0.1)
        return found

    async def settle(self, seconds: float = 0.2) -> None:
        """Let the emulator do what it does by itself within so many seconds of the loop's time."""
        await later(seconds)

    async def phase(self, name: str, phase: str) -> Obj:
        """Wait until the VMI has the phase; return it."""

        def look() -> Obj | None:
            vmi = self.find(VMI, name)
            return vmi if vmi is not None and vmi["status"].get("phase") == phase else None

        found = await self.until(look)
        assert found is not None
        return found

    async def word(self, name: str, printable: str) -> Obj:
        """Wait until the VM shows the printable status; return it."""

        def look() -> Obj | None:
            vm = self.find(VM, name)
            return vm if vm is not None and (vm.get("status") or {}).get("printableStatus") == printable else None

        found = await self.until(look)
        assert found is not None
        return found

    async def pod(self, vmi: str, *, without: Sequence[str] = ()) -> Obj:
        """Wait for a pod of the VMI whose name is not among those known; return it."""
        fresh = await self.until(lambda: [one for one in self.pods(vmi) if one["metadata"]["name"] not in without])
        return fresh[0]

    async def bind(self, pod: Obj, node: str) -> None:
        """Bind a pod as the scheduler does."""
        bound = self.find(POD, pod["metadata"]["name"])
        assert bound is not None
        assert not bound["spec"].get("schedulingGates")
        bound["spec"]["nodeName"] = node
        told = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
        kept = [one for one in bound["status"].get("conditions") or () if one["type"] != "PodScheduled"]
        bound["status"]["conditions"] = [*kept, told]
        self.api.store.put(POD, f"{NAMESPACE_NAME}/{pod['metadata']['name']}", bound)

    def report(self, node: str, **status: Any) -> None:  # noqa: ANN401 - JSON has any shape
        """Put parts into a node's status, as its kubelet and the node-lifecycle controller do."""
        found = self.find(NODE, node)
        assert found is not None
        self.api.store.put(NODE, node, found | {"status": found["status"] | status})

    async def run(self, vmi: str, node: str) -> Obj:
        """Bind the VMI's only pod and wait until the VMI is Running; return the pod."""
        pod = await self.pod(vmi)
        await self.bind(pod, node)
        await self.phase(vmi, "Running")
        await self.settle()
        found = self.find(POD, pod["metadata"]["name"])
        assert found is not None
        return found

    async def change(self, resource: Resource, name: str, merge: Obj, *, subresource: str = "") -> Obj:
        """Merge-patch an object as a stranger; return it as stored."""
        body = encode(merge)
        place = NAMESPACE_NAME if resource.namespaced else ""
        answer = await self.stranger.patch(resource, place, name, body, kind=PatchKind.MERGE, subresource=subresource)
        return decode(answer)

    async def delete(self, resource: Resource, name: str, *, grace_seconds: int | None = None) -> None:
        """Delete an object as a stranger."""
        place = NAMESPACE_NAME if resource.namespaced else ""
        await self.stranger.delete(resource, place, name, grace_seconds=grace_seconds)

    def gate_pods(self) -> None:
        """Put a scheduling gate on every launcher from now on, as a webhook of another's would."""
        self.mutate("gate", "pods", [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}])

    async def ungate(self, pod: Obj) -> None:
        """Take all gates off a pod."""
        gates = [{"op": "remove", "path": "/spec/schedulingGates"}]
        name = pod["metadata"]["name"]
        await self.stranger.patch(POD, NAMESPACE_NAME, name, encode(gates), kind=PatchKind.JSON)

    def mutate(self, name: str, resource: str, operations: list[Obj]) -> None:
        """Patch every new object of a resource, in a webhook that sorts before KubeVirt's."""

        async def review(asked: Obj) -> Obj:
            patch = base64.b64encode(encode(operations)).decode()
            answer = {"uid": asked["request"]["uid"], "allowed": True, "patch": patch, "patchType": "JSONPatch"}
            return {"response": answer}

        self.api.admit(Hook(name=name, review=review, resources=(resource,), operations=("CREATE",), mutating=True))

    def refuse(self, name: str, resource: str, message: str) -> None:
        """Refuse every new object of a resource until `api.unadmit(name)`."""

        async def review(asked: Obj) -> Obj:
            status = {"code": 403, "reason": "Forbidden", "message": message}
            return {"response": {"uid": asked["request"]["uid"], "allowed": False, "status": status}}

        self.api.admit(Hook(name=name, review=review, resources=(resource,), operations=("CREATE",)))

    def watch_creates(self, name: str, resource: str, requests: list[Obj]) -> None:
        """Note the request of every create of a resource, in a mutating webhook of that name."""

        async def review(asked: Obj) -> Obj:
            requests.append(asked["request"])
            return {"response": {"uid": asked["request"]["uid"], "allowed": True}}

        self.api.admit(Hook(name=name, review=review, resources=(resource,), operations=("CREATE",), mutating=True))

    async def refused(self, resource: Resource, obj: Mapping[str, Any]) -> ApiError:
        """Create what must be refused; return the refusal."""
        try:
            await self.create(resource, obj)
        except ApiError as error:
            return error
        raise AssertionError(f"a {resource.kind} was accepted that should not be")


async def later(seconds: float) -> None:
    """Let so much of the loop's time pass; on a loop whose time jumps that is no waiting."""
    await asyncio.sleep(seconds)


def brief(written: tuple[str, Obj]) -> str:
    """Say in a few words what was written."""
    kind, obj = written
    status = obj.get("status") or {}
    word = status.get("phase") or status.get("printableStatus") or obj.get("note") or ""
    return f"{kind} {obj['kind']} {obj['metadata']['name']} {word}"


def vmi_spec(*gpus: str, volumes: Sequence[Obj] = ()) -> Obj:
    """A small guest with one gpus entry per device name."""
    devices: Obj = {"gpus": [{"name": f"gpu{n}", "deviceName": name} for n, name in enumerate(gpus, 1)]} if gpus else {}
    spec: Obj = {"domain": {"memory": {"guest": "1Gi"}, "devices": devices}}
    return spec | ({"volumes": list(volumes)} if volumes else {})


def vm(name: str, *gpus: str, strategy: str = "Always", labels: Obj | None = None, **spec: Any) -> Obj:  # noqa: ANN401 - JSON has any shape
    """A VM; `spec` goes on top of the VMI template's."""
    template = {"metadata": {"labels": labels or {}}, "spec": vmi_spec(*gpus) | spec}
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    return {"metadata": metadata, "spec": {"runStrategy": strategy, "template": template}}


def vmi(name: str, *gpus: str, **spec: Any) -> Obj:  # noqa: ANN401 - JSON has any shape
    """A bare VMI."""
    return {"metadata": {"name": name, "namespace": NAMESPACE_NAME}, "spec": vmi_spec(*gpus) | spec}


def kubevirt_cr(**configuration: Any) -> Obj:  # noqa: ANN401 - JSON has any shape
    """A KubeVirt CR that permits a card and a vGPU profile; `configuration` goes on top."""
    table = {
        "pciHostDevices": [{"pciVendorSelector": "10DE:26B9", "resourceName": CARD}],
        "mediatedDevices": [{"mdevNameSelector": "NVIDIA L40S-24C", "resourceName": SLICE}],
    }
    metadata = {"name": "kubevirt", "namespace": "kubevirt"}
    return {"metadata": metadata, "spec": {"configuration": {"permittedHostDevices": table} | configuration}}


@asynccontextmanager
async def staged(configuration: Obj | None = None, **options: Any) -> AsyncIterator[Stage]:  # noqa: ANN401 - JSON has any shape
    """Two nodes with a card and two vGPUs each, a KubeVirt CR, virt-api's webhooks, the emulator running."""
    clock = LoopClock()
    api = ApiServer(clock=clock)
    for resource in (*RESOURCES, SECRET, CONTROLLER_REVISION):
        api.serve(resource)
    kubevirt = KubeVirt(api.as_user(account("kubevirt", CONTROLLER_ACCOUNT)), clock=clock, **options)
    for hook in VirtApi(kubevirt.config, clock).hooks():
        api.admit(hook)
    stage = Stage(api, kubevirt)
    for name in (NAMESPACE_NAME, "kubevirt"):
        await stage.create(NAMESPACE, {"metadata": {"name": name}})
    for name in ("node-1", "node-2"):
        allocatable = ROOMY | {CARD: "1", SLICE: "2"}
        await stage.create(NODE, {"metadata": {"name": name}, "status": {"allocatable": allocatable}})
    await stage.create(KUBEVIRT, kubevirt_cr(**(configuration or {})), "kubevirt")
    async with emulator(kubevirt):
        yield stage
