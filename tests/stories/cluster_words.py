"""What a story says of the cluster, of watches, time and leaders: one method a word."""

import shlex
from collections.abc import Iterable

from msgspec.structs import replace

from binder.evolve import is_dirty, may_place
from binder.state import Holding
from schemas import decisions as d
from schemas import events as e
from schemas.names import CLASS_FINALIZER
from schemas.objects import (
    AnyView,
    BudgetView,
    ClassView,
    NodeView,
    PodView,
    PvcView,
    PvView,
    SettingsView,
    VmiView,
)
from schemas.reasons import Order
from tests.binder.scene import SECOND, Scene
from tests.stories.words import NAMESPACE, Words, budget_key, counted, resource, taint, told, toleration

PLURALS = {
    "node": "nodes",
    "pod": "pods",
    "vmi": "virtualmachineinstances",
    "vm": "virtualmachines",
    "claim": "gpuclaims",
    "class": "gpuclasses",
    "pv": "persistentvolumes",
    "pvc": "persistentvolumeclaims",
    "budget": "gpubudgets",
    "pool": "virtualmachinepools",
    "set": "virtualmachineinstancereplicasets",
}
CLUSTER_WIDE = ("node", "class", "pv")
Lines = list[str]


class ClusterWords:
    """Words about everything but VMs. Each returns the decisions, or lines, that it leads to."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.requests = 0
        self.classes = {"ghost": True}

    def hear(self, line: str) -> Lines:
        """Do what a line says and return what is told of it."""
        word, _, rest = line.partition(" ")
        command = getattr(self, "do_" + word.replace("-", "_"), None)
        if command is None:
            raise ValueError(f"no story knows the word {word!r}")
        said = command(rest) if word == "message" else command(Words(shlex.split(rest)))
        return [line if isinstance(line, str) else told(line) for line in said]

    def _view(self, kind: str, name: str) -> AnyView:
        if "#" in name:
            vmi, _, place = name.partition("#")
            name = self.scene.book.state.sets[self._vmi(vmi).uid].claims[int(place)].name
        key = name if kind in CLUSTER_WIDE else f"{NAMESPACE}/{name}"
        return self.scene.objects[PLURALS[kind]][key]

    def _vmi(self, name: str) -> VmiView:
        view = self._view("vmi", name)
        assert isinstance(view, VmiView)
        return view

    def _pod(self, name: str) -> PodView:
        view = self._view("pod", name)
        assert isinstance(view, PodView)
        return view

    # The cluster.

    def do_cold(self, _: Words) -> Iterable[d.Decision]:
        """Begin with nothing listed."""
        self.scene = Scene(synced=False)
        return ()

    def do_class(self, words: Words) -> Iterable[d.Decision]:
        """`class NAME [resource=R] [tolerates=T]... [mode=M] [most=N] [bare] [deleting] [conflict]`.

        It has our finalizer, unless it is bare.
        """
        bare, deleting, conflict = words.flag("bare"), words.flag("deleting"), words.flag("conflict")
        mode, most = words.one("mode"), words.one("most")
        name = words.names[0]
        self.classes[name] = True
        tolerations = tuple(map(toleration, words.every("tolerates")))
        by = resource(words.one("resource", name))
        finalizers = () if bare else (CLASS_FINALIZER,)
        return self.scene.show(
            ClassView(
                name, "", "", "", deleting, by, mode, int(most) if most else None, tolerations=tolerations,
                conflict=conflict, finalizers=finalizers,
            )
        )  # fmt: skip

    def do_node(self, words: Words) -> Iterable[d.Decision]:
        """`node NAME RESOURCE=N... [label=K:V] [taint=K=V:E] [cordoned] [unready] [uid=U]`."""
        uid, cordoned, unready = words.one("uid"), words.flag("cordoned"), words.flag("unready")
        labels, taints = words.pairs("label"), tuple(map(taint, words.every("taint")))
        return self.scene.show(
            NodeView(words.names[0], uid, "", "", False, labels, taints, cordoned, not unready, words.amounts())
        )

    def do_raw(self, words: Words) -> Iterable[d.Decision]:
        """`raw POD NODE RESOURCE=N...`: a pod that is nobody's launcher."""
        name, node = words.names
        return self.scene.show(PodView(name, "", "", NAMESPACE, node=node, requests=words.amounts()))

    def do_budget(self, words: Words) -> Iterable[d.Decision]:
        """`budget NAME KEY=N...`: what the namespace may hold; KEY is a class, `total` or a resource."""
        hard = {budget_key(key): int(values[-1]) for key, values in words.options.items()}
        return self.scene.show(BudgetView(words.names[0], "", "", NAMESPACE, hard=hard))

    def do_pv(self, words: Words) -> Iterable[d.Decision]:
        """`pv NAME [affinity=TERM]...`."""
        return self.scene.show(PvView(words.names[0], "", "", terms=words.terms()))

    def do_pvc(self, words: Words) -> Iterable[d.Decision]:
        """`pvc NAME [PV]`."""
        name, volume = (*words.names, "")[:2]
        return self.scene.show(PvcView(name, "", "", NAMESPACE, volume=volume))

    def do_settings(self, words: Words) -> Iterable[d.Decision]:
        """`settings KEY=VALUE...`."""
        data = {key: values[-1] for key, values in words.options.items()}
        return self.scene.show(SettingsView("settings", "", "", "gpubinder", data=data))

    def do_gone(self, words: Words) -> Iterable[d.Decision]:
        """`gone KIND NAME`: deleted, and the watch says so. `VMI#0` names the first claim of its set."""
        kind, name = words.names
        return self.scene.remove(PLURALS[kind], self._view(kind, name).key)

    def do_lose(self, words: Words) -> Iterable[d.Decision]:
        """`lose KIND NAME`: deleted while nobody watches."""
        kind, name = words.names
        self.scene.forget(PLURALS[kind], self._view(kind, name).key)
        return ()

    # Watches, time, leaders.

    def do_tick(self, words: Words) -> Iterable[d.Decision]:
        """`tick SECONDS`: so much later by the server's stamps; below zero they jump back."""
        return self.scene.tick(float(words.names[0]))

    def do_pass(self, words: Words) -> Iterable[d.Decision]:
        """`pass SECONDS`: so much later, in steps that logical time takes whole."""
        left, said = int(words.names[0]), list[d.Decision]()
        while left > 0:
            said += self.scene.tick(min(left, 20))
            left -= 20
        return said

    def do_continue(self, words: Words) -> Lines:
        """`continue`: the leader goes on; decisions are counted."""
        return counted(self.scene.send(e.Continue()))

    def do_progress(self, _: Words) -> Iterable[d.Decision]:
        """`progress`: every watch says how far it is."""
        return self.scene.progress()

    def do_epoch(self, _: Words) -> Iterable[d.Decision]:
        """`epoch`: another leader begins."""
        self.scene.epoch()
        return ()

    def do_adopt(self, _: Words) -> Iterable[d.Decision]:
        """`adopt`: the log is lost; a new generation lists what is there, and takes it over."""
        self.scene.adopt()
        return [one for kind in self.scene.objects for one in self.scene.relist(kind)]

    def do_open(self, words: Words) -> Iterable[d.Decision]:
        """`open KIND [rewound]`: a session begins."""
        rewound = words.flag("rewound")
        return self.scene.open(PLURALS.get(words.names[0], words.names[0]), rewound=rewound)

    def do_relist(self, words: Words) -> Iterable[d.Decision]:
        """`relist KIND|all [rewound] [versions=back]`: a session begins, lists what is there, and is complete."""
        rewound = words.flag("rewound")
        if words.one("versions") == "back":
            self._back_to_a_backup()
        kinds = self.scene.objects if words.names == ["all"] else [PLURALS.get(name, name) for name in words.names]
        return [one for kind in kinds for one in self.scene.relist(kind, rewound=rewound)]

    def _back_to_a_backup(self) -> None:
        self.scene.rv = 1
        for table in self.scene.objects.values():
            for key, view in table.items():
                table[key] = replace(view, rv="1")

    def do_list_until(self, words: Words) -> Iterable[d.Decision]:
        """`list-until KIND RV`: the open list is complete, at that version."""
        kind, rv = PLURALS[words.names[0]], words.names[1]
        return self.scene.send(e.SessionSynced(kind, self.scene.sessions[kind], rv))

    def do_unserved(self, words: Words) -> Iterable[d.Decision]:
        """`unserved KIND`: the API server does not know the kind (any more)."""
        kind = PLURALS.get(words.names[0], words.names[0])
        return self.scene.send(e.NotServed(kind, self.scene.sessions.get(kind, 0)))

    def do_old_session(self, words: Words) -> Iterable[d.Decision]:
        """`old-session node ...`: a change that an ended session still delivers."""
        now = self.scene.sessions["nodes"]
        self.scene.sessions["nodes"] = now - 1
        words.names.pop(0)
        said = self.do_node(words)
        self.scene.sessions["nodes"] = now
        return said

    def do_older(self, words: Words) -> Iterable[d.Decision]:
        """`older node ...`: the watch delivers a version from before the one that is known."""
        words.names.pop(0)
        name, units = words.names[0], words.amounts()
        return self.scene.watch("nodes", [NodeView(name, f"uid-{name}", "0", ready=True, allocatable=units)])

    def do_evidence(self, words: Words) -> Iterable[d.Decision]:
        """`evidence CLASS rv=N [resource=R]`: a VMI create is asked about, with the class as it was read."""
        name, rv = words.names[0], words.one("rv")
        by = resource(words.one("resource", name))
        view = ClassView(name, f"uid-{name}", rv, resource=by, finalizers=(CLASS_FINALIZER,))
        text = f'[{{"className":"{name}","count":1}}]'
        return self.scene.send(e.VmiRequest("q", NAMESPACE, "asked", "somebody", text, classes=(view,)))

    def do_command(self, words: Words) -> Iterable[d.Decision]:
        """`command ORDER [VM [NODE]]`: an operator says so."""
        order, name, node = (*words.names, "", "")[:3]
        return self.scene.send(e.Command(Order(order), "ops", NAMESPACE if name else "", name, node))

    def do_message(self, text: str) -> Iterable[d.Decision]:
        """`message TEXT`: a message as it stands."""
        return self.scene.send_bytes(text.encode())

    def do_unknown(self, text: Words) -> Lines:
        """`unknown VERSION`: a tick of that version."""
        try:
            self.scene.send_bytes(b'{"type":"tick","version":' + text.names[0].encode() + b"}")
        except e.UnknownMessage as stop:
            self.scene.sequence -= 1
            return [f"stops: {stop}"]
        return ["went on"]

    def do_void(self, words: Words) -> Iterable[d.Decision]:
        """`void next`: an operator skips the next message."""
        self.scene.book.state.voided[str(self.scene.sequence + 1)] = "operator: broken"
        return ()

    def do_restart(self, _: Words) -> Iterable[d.Decision]:
        """`restart`: the binder goes on from its snapshot."""
        self.scene.restart()
        return ()

    def do_show(self, words: Words) -> Lines:
        """`show NODE...|VMI...|CLAIM...|time|placing|left|troubles|skips`: tell what the state holds."""
        return [self._shown(name) for name in words.names]

    def _shown(self, name: str) -> str:
        state, book = self.scene.book.state, self.scene.book
        if name == "time":
            return f"logical time {state.now_ns // SECOND} s, silence {state.gap_ns // SECOND} s"
        if name == "placing":
            return f"places: {'yes' if may_place(state) else 'no'}"
        if name == "troubles":
            found = (f"{node}: {', '.join(words)}" for node, words in sorted(state.troubles.items()))
            return "; ".join(found) or "no node is in trouble"
        if name == "skips":
            found = (f"{vm.partition('/')[2]}: {', '.join(sorted(nodes))}" for vm, nodes in sorted(state.skips.items()))
            return "; ".join(found) or "no VM skips a node"
        if name == "left":
            return f"left to look at: {'something' if is_dirty(state) else 'nothing'}"
        node = state.node(name)
        if node is not None:
            return f"{name} has free: " + ", ".join(f"{key} {book.free(node, key)}" for key in sorted(node.allocatable))
        holding = state.holding(NAMESPACE, name)
        if holding is not None:
            return f"{name} " + self._told_holding(holding)
        gpu_set = state.sets.get(self._vmi(name).uid)
        if gpu_set is None:
            return f"{name} has no set"
        pinned = ", pinned" if gpu_set.pinned else ""
        return f"{name} is on {gpu_set.node}{pinned}" if gpu_set.node else f"{name} waits: {gpu_set.reason}"

    def _told_holding(self, holding: Holding) -> str:
        of = f", of {holding.attached.name}" if holding.attached else ""
        if holding.freed:
            return "is freed"
        if holding.node:
            return f"is on {holding.node}{of}"
        return f"is {f'lost, {holding.lost}' if holding.lost else 'pending'}: {holding.reason}{of}"
