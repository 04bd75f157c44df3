"""What can happen to a small cluster, its watches and its clock, told by numbers."""

from msgspec.structs import replace

from binder.state import KUBEVIRT_KINDS, NEEDED_KINDS
from schemas import events as e
from schemas.names import CLASS_FINALIZER, SETTING_PAUSED
from schemas.objects import (
    AnyView,
    ClassView,
    NodeSelectorTerm,
    NodeView,
    PodView,
    PvcView,
    PvView,
    Requirement,
    SettingsView,
    Taint,
    Toleration,
    VmiView,
)
from schemas.reasons import Order
from tests.binder.scene import Scene

RESOURCES = ("nvidia.com/A", "nvidia.com/B")
CLASSES = ("a", "b", "a2")
ENTRIES = (
    '[{"className":"a","count":1}]',
    '[{"className":"a","count":2}]',
    '[{"className":"a","count":1},{"className":"b","count":1}]',
    '[{"className":"b"}]',
    '[{"className":"a2","count":1},{"className":"a","count":1}]',
    '[{"className":"b","count":2}]',
    "not JSON",
    '[{"claimName":"mine0"}]',
    '[{"claimName":"mine0"},{"claimName":"mine1"}]',
    '[{"className":"a"},{"claimName":"mine1"}]',
    '[{"claimName":"mine2"},{"claimName":"mine1"}]',
)
TAINTS = (
    (),
    (Taint("gpu", "yes", "NoSchedule"),),
    (Taint("gpu", "no", "NoExecute"),),
    (Taint("x", "", "PreferNoSchedule"),),
)
TOLERATIONS = ((), (Toleration("gpu", "Exists"),), (Toleration("gpu", "Equal", "yes", "NoSchedule"),))
ZONES = ("", "east", "west")
TERMS = (
    None,
    (NodeSelectorTerm((Requirement("zone", "In", ("east",)),)),),
    (
        NodeSelectorTerm((Requirement("zone", "In", ("west",)),)),
        NodeSelectorTerm((Requirement("zone", "DoesNotExist"),)),
    ),
    (NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n1",)),)),),
)
NAMESPACES = ("tenant-a", "tenant-a-b")


class ClusterActs:
    """Acts on nodes, classes, volumes, settings, watches and time. Few names, so that everything meets."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.count = 0

    def _pick(self, kind: str, number: int) -> AnyView | None:
        table = self.scene.objects[kind]
        return table[sorted(table)[number % len(table)]] if table else None

    def _node(self, a: int, b: int, c: int, d: int) -> None:
        amounts = {RESOURCES[0]: 1 + a % 3 if a % 8 else 0, RESOURCES[1]: b % 3, "cpu": 1000 * (1 + c % 5)}
        zone = ZONES[d % 5 % 3]
        self.scene.show(
            NodeView(
                f"n{(a + b) % 3}",
                "",
                "",
                labels={"zone": zone} if zone else {},
                taints=TAINTS[(c * d) % 4 if a % 3 == 0 else 0],
                unschedulable=d % 9 == 8,
                ready=c % 9 != 8,
                allocatable={name: amount for name, amount in amounts.items() if amount},
            )
        )

    def _node_gone(self, a: int, *_: int) -> None:
        view = self._pick("nodes", a)
        if isinstance(view, NodeView):
            self.scene.remove("nodes", view.key)

    def _gpu_class(self, a: int, b: int, c: int, d: int) -> None:
        name = CLASSES[a % 3]
        resource = RESOURCES[b % 2] if c % 5 == 0 else RESOURCES[name == "b"]
        deleting, finalizers = d % 12 == 11, (CLASS_FINALIZER,) if d % 4 else ()
        self.scene.show(
            ClassView(
                name, "", "", "", deleting, resource, tolerations=TOLERATIONS[c % 3], finalizers=finalizers
            )
        )  # fmt: skip

    def _class_gone(self, a: int, b: int, *_: int) -> None:
        view = self._pick("gpuclasses", a)
        if isinstance(view, ClassView) and b % 6 == 0:
            self.scene.remove("gpuclasses", view.key)

    def _raw_pod(self, a: int, b: int, c: int, *_: int) -> None:
        requests = {RESOURCES[a % 2]: b % 3, "cpu": 1000 * (c % 3)}
        self.scene.show(PodView(f"raw{a % 3}", "", "", "kube-system", node=f"n{c % 3}", requests=requests))

    def _volume(self, a: int, b: int, *_: int) -> None:
        self.scene.show(PvView(f"pv{a % 3}", "", "", terms=TERMS[b % 4]))

    def _bound_volume(self, a: int, b: int, c: int, *_: int) -> None:
        key = f"{NAMESPACES[b % 2]}/disk{a % 3}"
        if c % 5 == 4 and key in self.scene.objects["persistentvolumeclaims"]:
            self.scene.remove("persistentvolumeclaims", key)
        else:
            namespace, name = key.split("/")
            self.scene.show(PvcView(name, f"{key}-uid", "", namespace, volume=f"pv{c % 4}" if c % 4 < 3 else ""))

    def _settings(self, a: int, b: int, *_: int) -> None:
        """The settings change, or an operator says something."""
        if a % 9 == 8:
            order = (Order.PAUSE, Order.RESUME, Order.RESUME, Order.UNSKIP)[b % 4]
            self.scene.send(e.Command(order, "ops", NAMESPACES[b % 2], f"vm{b % 5}", f"n{b % 3}" if b % 7 else ""))
            return
        data = {SETTING_PAUSED: "true"} if a % 5 == 0 else {}
        self.scene.show(SettingsView("settings", "", "", "gpubinder", data=data))

    def _tick(self, a: int, b: int, *_: int) -> None:
        self.scene.tick((1, 2, 5, 20, -3, 40, 700)[a % 7] + b % 2)

    def _long(self, a: int, *_: int) -> None:
        """So much time passes that who waits is to have a node kept for it, or more of it."""
        for _halfminute in range(20 + a % 25 if a % 3 == 0 else a % 20):
            self.scene.tick(30)

    def _progress(self, *_: int) -> None:
        self.scene.progress()

    def _epoch(self, a: int, *_: int) -> None:
        if a % 3 == 0:
            self.scene.epoch()

    def _session(self, a: int, b: int, *_: int) -> None:
        """A kind is listed anew, or one of KubeVirt's is not served any more (C61)."""
        if b % 6 == 0:
            self.scene.open(NEEDED_KINDS[a % len(NEEDED_KINDS)])
        elif b % 6 == 1:
            kind = KUBEVIRT_KINDS[a % len(KUBEVIRT_KINDS)]
            self.scene.send(e.NotServed(kind, self.scene.sessions.get(kind, 0)))

    def _relist(self, a: int, b: int, c: int, *_: int) -> None:
        """The API server may have come back from a backup: then its versions went back too (T12)."""
        kinds = sorted(self.scene.book.behind) if c % 4 else []
        kind = (kinds or NEEDED_KINDS)[a % len(kinds or NEEDED_KINDS)]
        self.scene.relist(kind, rewound=b % 4 == 0, chunk=1 + c % 3)

    def _stale(self, a: int, b: int, *_: int) -> None:
        kind = ("pods", "nodes", "virtualmachineinstances")[a % 3]
        view = self._pick(kind, b)
        if isinstance(view, PodView | NodeView | VmiView):
            self.scene.send(e.Changes(kind, self.scene.sessions.get(kind, 1) - 1, (replace(view, rv="999999"),)))

    def _malformed(self, a: int, *_: int) -> None:
        bodies = (
            b"",
            b"{",
            b'{"type":"tick","version":"x"}',
            b'{"type":"changes","kind":"secrets","session":1,"changes":[]}',
        )
        self.scene.send_bytes(bodies[a % 4])

    def _evidence(self, a: int, b: int, *_: int) -> None:
        """A class read for a request: fresh, or older than what the watch said since."""
        view = self._pick("virtualmachineinstances", a)
        if isinstance(view, VmiView):
            old = ClassView(CLASSES[a % 3], f"uid-{CLASSES[a % 3]}", str(b % 20), resource=RESOURCES[b % 2])
            self.scene.send(e.VmiRequest(f"q{self.count}", view.namespace, view.name, "u", view.gpus, classes=(old,)))

    def _missed(self, a: int, b: int, *_: int) -> None:
        """Something is deleted while the watch is down (C22)."""
        kind = ("pods", "nodes", "virtualmachineinstances", "gpuclaims")[a % 4]
        view = self._pick(kind, b)
        if view is not None:
            self.scene.forget(kind, sorted(self.scene.objects[kind])[b % len(self.scene.objects[kind])])
            self.scene.relist(kind)
