"""A small cluster of tenants: one large node, two classes, budgets, and VMs that start in one line each."""

import msgspec
from msgspec.structs import replace

from binder.state import GpuSet, Holding
from schemas import decisions as d
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL, MIRRORED_BUDGET
from schemas.objects import BudgetView, ClaimView, ClassView, NodeView, PodView, TenantView, VmiView
from tests.binder.scene import Decisions, Scene, launcher

L40S, H100 = "nvidia.com/AD102GL_L40S", "nvidia.com/GH100_H100"
RESOURCES = {"l40s": L40S, "h100": H100}
TOTAL = BUDGET_TOTAL


def key(name: str) -> str:
    """Return a budget key: `total`, a class, or a resource as it is."""
    return BUDGET_TOTAL if name == "total" else name if "/" in name else BUDGET_CLASS_PREFIX + name


class Tenancy:
    """A scene with tenants. VMs are named `vm`, pods `vm-pod`; every input is held to the laws."""

    def __init__(self, units: int = 20, *, synced: bool = True) -> None:
        self.scene = Scene(synced=synced)
        self._starts = 0
        if synced:
            self.begin(units)

    def begin(self, units: int = 20) -> None:
        """Let there be two classes and a node with so many units of each."""
        for name, resource in RESOURCES.items():
            self.scene.show(ClassView(name, "", "", resource=resource))
        self.node(units)

    def node(self, units: int) -> Decisions:
        """Let the node offer so many units of each class."""
        offers = dict.fromkeys(RESOURCES.values(), units) | {"cpu": 1_000_000}
        return self.scene.show(NodeView("n1", "", "", ready=True, allocatable=offers))

    def budget(self, namespace: str, name: str = "b", **hard: int) -> Decisions:
        """Let a namespace have a budget."""
        limits = {key(one): units for one, units in hard.items()}
        return self.scene.show(BudgetView(name, "", "", namespace, hard=limits))

    def no_budget(self, namespace: str, name: str = "b") -> Decisions:
        """Delete a budget."""
        return self.scene.remove("gpubudgets", f"{namespace}/{name}")

    def release(self, namespace: str, name: str, tenant: str, *unread: str, opaque: bool = False, **hard: int) -> None:
        """Let a tenant's HelmRelease say its quotas."""
        limits = {key(one): units for one, units in hard.items()}
        view = TenantView(name, "", "", namespace, tenant=tenant, hard=limits, opaque=opaque)
        self.scene.show(replace(view, unread=tuple(map(key, unread))))

    def mirror(self, namespace: str, **hard: int) -> Decisions:
        """Let the budget stand that mirrors a tenant's release."""
        return self.budget(namespace, MIRRORED_BUDGET, **hard)

    def start(self, namespace: str, vm: str, *claims: str, **classes: int) -> Decisions:
        """Start a VM: VMI, admitted launcher and its listing, one input each; return what the last one led to."""
        self._starts += 1
        entries: list[dict[str, object]] = [{"className": name, "count": count} for name, count in classes.items()]
        entries += [{"claimName": name} for name in claims]
        vmi = VmiView(vm, f"uid-{namespace}-{vm}", "", namespace, gpus=msgspec.json.encode(entries).decode())
        self.scene.show(vmi)
        self.scene.admit(vmi, f"r{self._starts}")
        requests = {RESOURCES[name]: count for name, count in classes.items()}
        for name in claims:
            claim = self.scene.objects["gpuclaims"][f"{namespace}/{name}"]
            assert isinstance(claim, ClaimView)
            by = RESOURCES[claim.class_name]
            requests[by] = requests.get(by, 0) + claim.count
        pod = launcher(vmi, f"{vm}-pod", f"r{self._starts}", requests | {"cpu": 1000})
        pod = replace(pod, uid=f"uid-{namespace}-{vm}-pod")
        self.scene.show(pod)
        return self.scene.show(replace(vmi, active_pods={pod.uid: ""}))

    def run(self, namespace: str, vm: str) -> Decisions:
        """Let a placed VM's launcher run on the node."""
        return self.scene.show(
            replace(self.pod(namespace, f"{vm}-pod"), gates=(), node="n1", phase="Running", ran=True)
        )

    def stop(self, namespace: str, vm: str) -> Decisions:
        """Let a VM's VMI and launcher go."""
        said = self.scene.remove("virtualmachineinstances", f"{namespace}/{vm}")
        return said + self.scene.remove("pods", f"{namespace}/{vm}-pod")

    def order(self, namespace: str, name: str, gpu_class: str = "l40s", count: int = 1) -> Decisions:
        """Order a claim."""
        view = ClaimView(name, f"uid-{namespace}-{name}", "", namespace, class_name=gpu_class, count=count)
        return self.scene.show(view)

    def raw(self, namespace: str, name: str, **units: int) -> Decisions:
        """Let a pod run that asks for devices itself."""
        requests = {RESOURCES[one]: count for one, count in units.items()}
        return self.scene.show(PodView(name, "", "", namespace, node="n1", phase="Running", requests=requests))

    def pod(self, namespace: str, name: str) -> PodView:
        """Return a pod as the cluster holds it."""
        view = self.scene.objects["pods"][f"{namespace}/{name}"]
        assert isinstance(view, PodView)
        return view

    def set_of(self, namespace: str, vm: str) -> GpuSet:
        """Return a VM's set."""
        return self.scene.book.state.sets[f"uid-{namespace}-{vm}"]

    def holding(self, namespace: str, name: str) -> Holding:
        """Return what is held of a claim."""
        return self.scene.book.state.holdings[f"{namespace}/{name}"]

    def held(self, namespace: str, name: str) -> int:
        """Return the units that a namespace and all below it hold of a key."""
        return self.scene.book.budgets.held(namespace, key(name))


def places(said: Decisions) -> list[str]:
    """Return the VMs and claims that were placed, each with its namespace."""
    found = [f"{one.vmi.namespace}/{one.vmi.name}" for one in said if isinstance(one, d.SetPlaced)]
    for one in said:
        if isinstance(one, d.HeldPlaced):
            found += [f"{one.namespace}/{claim.name}" for claim in one.claims]
    return found


def bounds(said: Decisions) -> list[d.Over]:
    """Return the budgets that somebody was told to wait for."""
    told = [one.over for one in said if isinstance(one, d.SetWaits | d.HeldWaits)]
    return [over for over in told if over is not None]
