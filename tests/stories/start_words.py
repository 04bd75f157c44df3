"""What a story says of starts under policy Refuse: asked for at admission, withdrawn, launched with their pin."""

from collections.abc import Iterable

from msgspec.structs import replace

from schemas import decisions as d
from schemas import events as e
from schemas.names import NODE_NAME_FIELD, POLICY_REFUSE
from schemas.objects import Foreseen, NodeSelectorTerm, Requirement, VmiView
from tests.binder.scene import launcher
from tests.stories.cluster_words import ClusterWords, Lines
from tests.stories.words import CORES, NAMESPACE, Words, counted


class StartWords(ClusterWords):
    """Words about VMIs that are not stored yet."""

    def do_ask(self, words: Words) -> Iterable[d.Decision] | Lines:
        """`ask VMI CLASS=N... [uses=CLAIM]... [uid=U] [request=R] [cpu=N] [affinity=T] [selector=K:V] [volume=V]...`.

        The validating webhook asks for a start. Flags: `incomplete`, another webhook took a device away; `counted`,
        what is decided beside it is counted.
        """
        incomplete, in_short, cpu = words.flag("incomplete"), words.flag("counted"), int(words.one("cpu", "0"))
        selector, terms, volumes = words.pairs("selector"), words.terms(), tuple(words.every("volume"))
        name, uid, request = words.names[0], words.one("uid"), words.one("request") or self._request()
        vmi = VmiView(name, uid, "", NAMESPACE, gpus=words.one("annotation") or words.entries(list(self.classes)))
        requests = {"cpu": cpu * CORES} if cpu else {}
        asked = replace(
            self.scene.start_request(vmi, request),
            launcher=Foreseen(requests, selector, terms, volumes),
        )  # fmt: skip
        if incomplete:
            asked = replace(asked, asked=replace(asked.asked, bound_gpus=asked.asked.bound_gpus[1:]))
        said = self.scene.send(asked)
        return counted(said) if in_short else said

    def _request(self) -> str:
        self.requests += 1
        return f"a{self.requests}"

    def do_withdraw(self, words: Words) -> Iterable[d.Decision]:
        """`withdraw VMI REQUEST [uid=U]`: whoever asked gave up waiting."""
        uid = words.one("uid")
        name, request = words.names
        return self.scene.send(e.StartWithdrawn(request, d.VmiId(NAMESPACE, name, uid or f"uid-{name}")))

    def do_store(self, words: Words) -> Iterable[d.Decision]:
        """`store VMI CLASS=N... [uses=CLAIM]... [uid=U]`: the VMI that was admitted under Refuse is seen."""
        gpus = words.entries(list(self.classes))
        return self.scene.show(
            VmiView(words.names[0], words.one("uid"), "", NAMESPACE, gpus=gpus, policy=POLICY_REFUSE)
        )

    def do_launch(self, words: Words) -> Iterable[d.Decision]:
        """`launch POD of VMI [temporary] [migration] [RESOURCE=N]`: its launcher, made as our webhook answered."""
        temporary, migration = words.flag("temporary"), words.flag("migration")
        name, _, vmi_name = words.names
        vmi = self._vmi(vmi_name)
        request = self._request()
        said = list(self.scene.admit(vmi, request, temporary=temporary, migration=migration))
        admitted = next(one for one in said if isinstance(one, d.PodAdmitted))
        pod = launcher(vmi, name, request, {**self.units_of(vmi), "cpu": CORES, **words.amounts()})
        pin = NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (admitted.node,)),))
        pod = replace(pod, temporary=temporary, migration=migration)
        if not admitted.gate:
            pod = replace(pod, gates=(), terms=(pin,) if admitted.node else None)
        return said + list(self.scene.show(pod))

    def units_of(self, vmi: VmiView) -> dict[str, int]:
        """Return the units that a VMI's annotation asks for."""
        raise NotImplementedError
