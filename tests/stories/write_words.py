"""What a story says of what declares units, and of who asks whether something may be written or ordered."""

from collections.abc import Iterable

from msgspec.structs import replace

from schemas import decisions as d
from schemas import events as e
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL
from schemas.objects import ClassView, NamespaceView, PoolView, ReplicaSetView, VmiView, VmView
from tests.stories.cluster_words import PLURALS, ClusterWords, Lines
from tests.stories.words import NAMESPACE, Words


class WriteWords(ClusterWords):
    """Words about VMs, pools and replica sets as they are written. `may` asks first, and writes what may be."""

    def written(self, kind: str, words: Words) -> e.Writable:
        """Read `NAME [replicas=N] [CLASS=N]... [uses=CLAIM]... [of=OWNER] [created=T]`."""
        name, owner, replicas = words.names[0], self.owner(words), int(words.one("replicas", "1"))
        created, text = int(words.one("created", "0")), words.entries(list(self.classes))
        gpus = "" if text == "[]" else text
        match kind:
            case "vm":
                return VmView(name, "", "", NAMESPACE, gpus=gpus, created=created, owner_uid=owner)
            case "vmi":
                return VmiView(name, "", "", NAMESPACE, gpus=gpus, created=created, owner_uid=owner)
            case "pool":
                return PoolView(name, "", "", NAMESPACE, gpus=gpus, replicas=replicas)
            case _:
                return ReplicaSetView(name, "", "", NAMESPACE, gpus=gpus, replicas=replicas)

    def owner(self, words: Words) -> str:
        """Take `of=OWNER` as its uid."""
        owner = words.one("of")
        return f"uid-{owner}" if owner else ""

    def do_pool(self, words: Words) -> Iterable[d.Decision]:
        """`pool NAME [replicas=N] [CLASS=N]...`: a pool of VMs, written while nobody asked."""
        return self.scene.show(self.written("pool", words))

    def do_set(self, words: Words) -> Iterable[d.Decision]:
        """`set NAME [replicas=N] [CLASS=N]...`: a replica set of VMIs, written while nobody asked."""
        return self.scene.show(self.written("set", words))

    def do_may(self, words: Words) -> Lines:
        """`may vm|vmi|pool|set NAME ... [own] [uid=U]`: somebody asks to write it so; it is written where that passes.

        `own`: KubeVirt does, for the owner; `uid`: of a new object under the name.
        """
        own, uid, kind = words.flag("own"), words.one("uid"), words.names.pop(0)
        plural, view = PLURALS[kind], self.written(kind, words)
        known = self.scene.objects[plural].get(view.key)
        before = known if isinstance(known, VmView | VmiView | PoolView | ReplicaSetView) else None
        before = None if uid else before
        view = replace(view, uid=before.uid if before is not None else uid)
        self.requests += 1
        request = e.WriteRequest(f"w{self.requests}", plural, NAMESPACE, view.name, "somebody", view, before, own=own)
        passed, lines = self._answered(self.scene.send(request))
        if passed:
            self.scene.show(view)
        return lines

    def do_order(self, words: Words) -> Lines:
        """`order NAME CLASS=N [unentitled]`: somebody asks to order a claim; nothing is written."""
        entitled = not words.flag("unentitled")
        name, [(class_name, [count])] = words.names[0], words.options.items()
        found = self.scene.objects["gpuclasses"].get(class_name)
        classes = (found,) if isinstance(found, ClassView) else ()
        missing = () if classes else (class_name,)
        home = NamespaceView(NAMESPACE, "uid-home", "1", vgpu=entitled)
        self.requests += 1
        request = e.OrderRequest(
            f"o{self.requests}", NAMESPACE, name, "somebody", class_name, int(count), classes, missing, home
        )
        return self._answered(self.scene.send(request))[1]

    def _answered(self, said: tuple[d.Decision, ...]) -> tuple[bool, Lines]:
        answer = said[0]
        if isinstance(answer, d.Refused):
            return False, [f"refused, {answer.reason}: {answer.message}"]
        assert isinstance(answer, d.WritePassed)
        return True, ["may be"]

    def do_declared(self, _: Words) -> Lines:
        """`declared`: how many units the namespace declares, and how many it holds, by key."""
        book = self.scene.book
        used, held = book.declared.used.get(NAMESPACE, {}), book.budgets.used.get(NAMESPACE, {})
        return [f"{_short(key)} {used[key]}, held {held.get(key, 0)}" for key in sorted(used)] or ["nothing"]


def _short(key: str) -> str:
    return "total" if key == BUDGET_TOTAL else key.removeprefix(BUDGET_CLASS_PREFIX)
