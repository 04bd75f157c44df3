"""Strangers: pods that take devices past us, other controllers' gates, hands on launchers, the operator's settings."""

import base64

from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.admission import Hook
from deploy.world.manifests import Obj, controller_of, dig, encode, meta
from schemas.kinds import CONFIGMAP, POD
from schemas.names import GATE, SETTING_PAUSED, SETTINGS_CONFIGMAP
from tests.simulation.acts.act import Act, create, delete, hands, launchers, vm_key
from tests.simulation.cluster import node_name
from tests.simulation.labels import CARD, SLICE, SYSTEM, TAINT_KEY, TENANTS, ZONE, ZONES
from tests.simulation.world import World

FOREIGN_GATE = "example.org/gate"
_TERMS = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"


class Grab(Act, frozen=True):
    """A pod of somebody's takes devices of a node past us."""

    pod: int
    node: int
    count: int = 1
    slices: bool = False

    @override
    def begin(self, world: World) -> None:
        """Create the pod; the scheduler binds it once there is room."""
        asked = {(SLICE if self.slices else CARD): str(self.count), "cpu": "1"}
        on_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name(self.node)]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node]}}
        spec: Obj = {
            "containers": [{"name": "burn", "image": "burn", "resources": {"requests": asked, "limits": asked}}],
            "affinity": {"nodeAffinity": required},
            "tolerations": [{"key": TAINT_KEY, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
        }
        create(world, POD, TENANTS[0], {"metadata": {"name": f"grab-{self.pod}"}, "spec": spec})


class LetGo(Act, frozen=True):
    """That pod goes."""

    pod: int

    @override
    def begin(self, world: World) -> None:
        """Delete it."""
        delete(world, POD, f"{TENANTS[0]}/grab-{self.pod}")


class GateLaunchers(Act, frozen=True):
    """Another controller puts its gate on the next launchers of a VM."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Register its webhook for that VM."""
        key = vm_key(self.vm)

        def concerns(request: Obj) -> bool:
            owner = controller_of(request["object"])
            return owner is not None and f"{request['namespace']}/{owner['name']}" == key

        async def gate(review: Obj) -> Obj:
            pod = review["request"]["object"]
            gates = [*(dig(pod, "spec", "schedulingGates") or ()), {"name": FOREIGN_GATE}]
            patch = base64.b64encode(encode([{"op": "add", "path": "/spec/schedulingGates", "value": gates}])).decode()
            answer = {"uid": review["request"]["uid"], "allowed": True, "patch": patch, "patchType": "JSONPatch"}
            return {"response": answer}

        name = f"foreign-{self.vm}"
        world.cluster.api.unadmit(name)
        hook = Hook(name, gate, ("pods",), operations=("CREATE",), mutating=True, when=concerns)
        world.cluster.api.admit(hook)


class Ungate(Act, frozen=True):
    """That controller takes its gate off the VM's launchers, and puts it on none any more."""

    vm: int

    @override
    def begin(self, world: World) -> None:
        """Take it off."""
        world.cluster.api.unadmit(f"foreign-{self.vm}")
        for pod in launchers(world, self.vm):
            names = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
            if FOREIGN_GATE in names:
                path = f"/spec/schedulingGates/{names.index(FOREIGN_GATE)}"
                patch = encode(
                    [{"op": "test", "path": f"{path}/name", "value": FOREIGN_GATE}, {"op": "remove", "path": path}]
                )
                call = world.cluster.api.patch(
                    POD, meta(pod)["namespace"], meta(pod)["name"], patch, kind=PatchKind.JSON
                )
                hands(world, call)


class Narrow(Act, frozen=True):
    """Somebody narrows the affinity of a VM's gated launcher to a zone, as they may."""

    vm: int
    zone: int = 1

    @override
    def begin(self, world: World) -> None:
        """Add a requirement to each term."""
        for pod in launchers(world, self.vm):
            if not any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ()):
                continue
            only = {"key": ZONE, "operator": "In", "values": [ZONES[self.zone - 1]]}
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            terms = dig(pod, "spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms") or ()
            patch: list[Obj] = []
            for index, term in enumerate(terms):
                path = f"{_TERMS}/{index}/matchExpressions"
                more = [*(term.get("matchExpressions") or ()), only]
                patch.append({"op": "add", "path": path, "value": more})
            call = world.cluster.api.patch
            if patch:
                hands(world, call(POD, meta(pod)["namespace"], meta(pod)["name"], encode(patch), kind=PatchKind.JSON))


class Pause(Act, frozen=True):
    """The operator pauses placing, or lets it go on."""

    paused: bool = True

    @override
    def begin(self, world: World) -> None:
        """Write the setting."""
        body: Obj = {"data": {SETTING_PAUSED: "true" if self.paused else "false"}}
        if world.cluster.find(CONFIGMAP, f"{SYSTEM}/{SETTINGS_CONFIGMAP}") is None:
            create(world, CONFIGMAP, SYSTEM, {"metadata": {"name": SETTINGS_CONFIGMAP}} | body)
            return
        patch = world.cluster.api.patch
        hands(world, patch(CONFIGMAP, SYSTEM, SETTINGS_CONFIGMAP, encode(body), kind=PatchKind.MERGE))
