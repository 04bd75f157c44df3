"""The language of stories: a word and what it does; here what is said of VMs, their launchers and claims."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from schemas import decisions as d
from schemas import events as e
from schemas.names import CLAIM_FINALIZER, GATE
from schemas.objects import (
    ClaimView,
    ClassView,
    Stamp,
    VmiView,
)
from tests.binder.scene import launcher
from tests.stories.cluster_words import Lines
from tests.stories.start_words import StartWords
from tests.stories.words import CORES, NAMESPACE, Words, counted, resource
from tests.stories.write_words import WriteWords


class Story(StartWords, WriteWords):
    """A story being told: a cluster where every kind is synced, unless its first word is `cold`."""

    def do_vm(self, words: Words) -> Iterable[d.Decision]:
        """`vm NAME [CLASS=N]... [uses=CLAIM]... [created=T] [of=POOL]`."""
        return self.scene.show(self.written("vm", words))

    def do_vmi(self, words: Words) -> Iterable[d.Decision]:
        """`vmi NAME CLASS=N... [uses=CLAIM]... [uid=U] [policy=P] [volume=V]... [annotation=TEXT] [of=OWNER]`.

        `as=R`, for each entry: the resource that it was admitted with.
        """
        admitted = tuple(words.every("as"))
        volumes, uid, policy = tuple(words.every("volume")), words.one("uid"), words.one("policy")
        text = words.one("annotation") or words.entries(list(self.classes))
        name, owner = words.names[0], self.owner(words)
        return self.scene.show(
            VmiView(
                name, uid, "", NAMESPACE, gpus=text, policy=policy, volumes=volumes, owner_uid=owner, devices=admitted
            )
        )

    def do_phase(self, words: Words) -> Iterable[d.Decision]:
        """`phase VMI PHASE [deleting]`."""
        deleting = words.flag("deleting")
        name, phase = words.names
        return self.scene.show(replace(self._vmi(name), phase=phase, deleting=deleting))

    def do_admit(self, words: Words) -> Iterable[d.Decision]:
        """`admit VMI REQUEST [temporary] [migration]`: the webhook asks for a launcher."""
        temporary, migration = words.flag("temporary"), words.flag("migration")
        name, request = words.names
        return self.scene.admit(self._vmi(name), request, temporary=temporary, migration=migration)

    def do_pod(self, words: Words) -> Iterable[d.Decision]:
        """`pod NAME of VMI [stamp=S] [RESOURCE=N] [gate=G] [affinity=T] [selector=K:V] [priority=N] [claim=PVC]`.

        It asks for the VMI's units and a core, unless told otherwise. Flags: temporary, migration, bare.
        """
        temporary, migration, bare = words.flag("temporary"), words.flag("migration"), words.flag("bare")
        name, _, vmi_name = words.names
        vmi = self._vmi(vmi_name)
        gates = () if bare else (*words.every("gate"), GATE)
        stamp, terms, selector = words.one("stamp"), words.terms(), words.pairs("selector")
        priority, pvcs = int(words.one("priority", "0")), tuple(words.every("claim"))
        requests = {**self.units_of(vmi), "cpu": CORES, **words.amounts()}
        pod = launcher(vmi, name, stamp, requests)
        return self.scene.show(
            replace(
                pod, gates=gates, terms=terms, node_selector=selector, priority=priority, pvcs=pvcs,
                temporary=temporary, migration=migration,
            )
        )  # fmt: skip

    @override
    def units_of(self, vmi: VmiView) -> dict[str, int]:
        """Return the units that a VMI's annotation asks for."""
        asked: dict[str, int] = {}
        for entry in msgspec.json.decode(vmi.gpus, type=list[dict[str, int | str]]) if vmi.gpus.startswith("[") else ():
            class_name, count, by = str(entry.get("className")), int(entry.get("count", 1)), ""
            if "claimName" in entry:
                claim = self.scene.objects["gpuclaims"].get(f"{NAMESPACE}/{entry['claimName']}")
                if not isinstance(claim, ClaimView):
                    continue
                known = self.scene.book.state.holding(NAMESPACE, claim.name)
                class_name, count, by = claim.class_name, claim.count, known.claim.resource if known else ""
            view = self.scene.objects["gpuclasses"].get(class_name)
            by = by or (view.resource if isinstance(view, ClassView) else resource(class_name))
            asked[by] = asked.get(by, 0) + count
        return asked

    def do_list(self, words: Words) -> Iterable[d.Decision]:
        """`list VMI POD...`: status.activePods names these pods."""
        name, *pods = words.names
        return self.scene.show(replace(self._vmi(name), active_pods={self._pod(pod).uid: "" for pod in pods}))

    def do_start(self, words: Words) -> Iterable[d.Decision]:
        """`start VMI CLASS=N... [options of vmi and pod]`: VMI, admitted launcher `VMI-pod` and its listing."""
        name = words.names[0]
        uid, policy, volumes = words.one("uid"), words.one("policy"), tuple(words.every("volume"))
        text, created, owner = words.entries(list(self.classes)), int(words.one("created", "0")), self.owner(words)
        vmi = VmiView(
            name, uid, "", NAMESPACE, gpus=text, policy=policy, volumes=volumes, created=created, owner_uid=owner
        )
        said = list(self.scene.show(vmi))
        self.requests += 1
        request = f"r{self.requests}"
        said += [one for one in self.scene.admit(self._vmi(name), request) if not isinstance(one, d.PodAdmitted)]
        pod = words.one("pod", f"{name}-pod")
        words.names = [pod, "of", *words.names]
        words.options["stamp"] = [request]
        said += self.do_pod(words)
        return said + list(self.do_list(Words([name, pod])))

    def do_crowd(self, words: Words) -> Lines:
        """`crowd N CLASS=N`: so many VMs, whose launchers are listed at once; decisions are counted."""
        text = words.entries(list(self.classes))
        vmis, pods = [], []
        for number in range(int(words.names[0])):
            vmi = self.scene.newer(VmiView(f"crowd{number:03}", "", "", NAMESPACE, gpus=text))
            self.scene.watch("virtualmachineinstances", [vmi])
            self.scene.admit(vmi, f"q{number}")
            pods.append(launcher(vmi, f"{vmi.name}-pod", f"q{number}", {**self.units_of(vmi), "cpu": CORES}))
            vmis.append(vmi)
        self.scene.show(*pods)
        said = self.scene.show(*(replace(vmi, active_pods={f"uid-{vmi.name}-pod": ""}) for vmi in vmis))
        return counted(said)

    def do_pin(self, words: Words) -> Iterable[d.Decision]:
        """`pin POD [NODE]`: our gate is off, the scheduler bound the pod to the node."""
        name, node = (*words.names, "")[:2]
        pod = self._pod(name)
        return self.scene.show(replace(pod, gates=tuple(gate for gate in pod.gates if gate != GATE), node=node))

    def do_ungate(self, words: Words) -> Iterable[d.Decision]:
        """`ungate POD GATE`: another controller takes its gate off."""
        name, gate = words.names
        pod = self._pod(name)
        return self.scene.show(replace(pod, gates=tuple(one for one in pod.gates if one != gate)))

    def do_retarget(self, words: Words) -> Iterable[d.Decision]:
        """`retarget POD affinity=TERM...`: somebody changes the affinity of a gated pod."""
        return self.scene.show(replace(self._pod(words.names[0]), terms=words.terms()))

    def do_end(self, words: Words) -> Iterable[d.Decision]:
        """`end POD`: its containers have ended."""
        return self.scene.show(replace(self._pod(words.names[0]), ended=True, phase="Succeeded"))

    def do_fail(self, words: Words) -> Iterable[d.Decision]:
        """`fail POD REASON [ran]`: it failed on its node; `ran`: a container of it was started before."""
        ran = words.flag("ran")
        name, reason = words.names
        return self.scene.show(replace(self._pod(name), ended=True, phase="Failed", reason=reason, ran=ran))

    def do_terminate(self, words: Words) -> Iterable[d.Decision]:
        """`terminate POD`: it is being deleted, and its containers have not ended."""
        return self.scene.show(replace(self._pod(words.names[0]), deleting=True))

    def do_disown(self, words: Words) -> Iterable[d.Decision]:
        """`disown POD [VMI]`: somebody edits its owner references: nobody's, or another VMI's."""
        name, other = (*words.names, "")[:2]
        owner = self._vmi(other) if other else None
        uid, called = (owner.uid, owner.name) if owner else ("", "")
        return self.scene.show(replace(self._pod(name), owner_uid=uid, owner_name=called))

    def do_run(self, words: Words) -> Iterable[d.Decision]:
        """`run POD`: its containers were started."""
        return self.scene.show(replace(self._pod(words.names[0]), phase="Running", ran=True))

    def do_unschedulable(self, words: Words) -> Iterable[d.Decision]:
        """`unschedulable POD [no]`: kube-scheduler finds no node for it, or finds one again."""
        no = words.flag("no")
        return self.scene.show(replace(self._pod(words.names[0]), unschedulable=not no))

    # Claims and writes.

    def do_claims(self, words: Words) -> Iterable[d.Decision]:
        """`claims VMI [on=NODE]`: the set's claims are created; `on`: their status says that they are there."""
        vmi, node = self._vmi(words.names[0]), words.one("on")
        said: list[d.Decision] = []
        for claim in self.scene.book.state.sets[vmi.uid].claims:
            view = ClaimView(claim.name, "", "", NAMESPACE, class_name=claim.class_name, count=claim.count)
            phase = "Bound" if node else ""
            said += self.scene.show(replace(view, template=True, owner_uid=vmi.uid, node=node, phase=phase))
        return said

    def do_claim(self, words: Words) -> Iterable[d.Decision]:
        """`claim NAME of VMI [class=C] [count=N] [uid=U]`: a template claim that somebody made.

        The name `VMI#0` is that of the set's first claim. `claim NAME CLASS=N [uid=U] [created=T] [deleting]` is a
        claim that a tenant orders.
        """
        if "of" not in words.names:
            return self._order(words)
        name, _, owner = words.names
        vmi = self._vmi(owner)
        if "#" in name:
            name = self.scene.book.state.sets[vmi.uid].claims[int(name.split("#")[1])].name
        view = ClaimView(name, words.one("uid", f"uid-{owner}-claim"), "", NAMESPACE, class_name=words.one("class"))
        return self.scene.show(replace(view, count=int(words.one("count", "1")), template=True, owner_uid=vmi.uid))

    def _order(self, words: Words) -> Iterable[d.Decision]:
        deleting, uid, created = words.flag("deleting"), words.one("uid"), int(words.one("created", "0"))
        [(class_name, [count])] = words.options.items()
        view = ClaimView(words.names[0], uid, "", NAMESPACE, deleting, class_name, int(count), created=created)
        return self.scene.show(view)

    def do_orders(self, words: Words) -> Lines:
        """`orders N CLASS=N`: so many claims are seen at once; decisions are counted."""
        [(class_name, [count])] = words.options.items()
        views = [
            ClaimView(f"order{number:03}", "", "", NAMESPACE, class_name=class_name, count=int(count))
            for number in range(int(words.names[0]))
        ]
        return counted(self.scene.show(*views))

    def do_shown(self, words: Words) -> Iterable[d.Decision]:
        """`shown CLAIM NODE`: the claim's status says that it is Bound there."""
        name, node = words.names
        view = self._view("claim", name)
        assert isinstance(view, ClaimView)
        return self.scene.show(replace(view, node=node, phase="Bound"))

    def do_confirm(self, words: Words) -> Iterable[str | d.Decision]:
        """`confirm CLAIM CODE [older]`: what became of the status write of its newest decision."""
        older = words.flag("older")
        name, code = words.names
        known = self.scene.book.state.holdings[f"{NAMESPACE}/{name}"]
        stamp = Stamp(known.stamp.generation, known.stamp.sequence - 1, 0) if older else known.stamp
        said = self.scene.send(e.Outcomes((e.Outcome("status", NAMESPACE, name, "", stamp, int(code)),)))
        after = self.scene.book.state.holdings[f"{NAMESPACE}/{name}"]
        return ["confirmed" if after.confirmed == after.stamp else "not confirmed", *said]

    def do_guarded(self, words: Words) -> Iterable[d.Decision]:
        """`guarded CLAIM [not]`: it carries our finalizer, or somebody took it off."""
        stripped = words.flag("not")
        view = self._view("claim", words.names[0])
        assert isinstance(view, ClaimView)
        return self.scene.show(replace(view, finalizers=() if stripped else (CLAIM_FINALIZER,)))

    def do_written(self, words: Words) -> Iterable[d.Decision]:
        """`written CLAIM`: the claim's status shows what was decided last."""
        view = self._view("claim", words.names[0])
        holding = self.scene.book.state.holding(NAMESPACE, view.name)
        assert holding is not None
        assert isinstance(view, ClaimView)
        return self.scene.show(replace(view, stamp=holding.stamp, node=holding.node, resource=holding.claim.resource))

    def do_outcome(self, words: Words) -> Iterable[d.Decision]:
        """`outcome VMI ACTION CODE [REASON] [older]`: what became of the newest decision's write."""
        older = words.flag("older")
        name, action, code, reason = (*words.names, "")[:4]
        vmi = self._vmi(name)
        stamp = self.scene.book.state.sets[vmi.uid].stamp
        if older:
            stamp = Stamp(stamp.generation, stamp.sequence - 1, 0)
        return self.scene.send(e.Outcomes((e.Outcome(action, NAMESPACE, name, vmi.uid, stamp, int(code), reason),)))
