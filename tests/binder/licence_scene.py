"""Licences in events: sources, copies and a hand that writes what was decided, or fails to."""

from msgspec.structs import replace
from typing_extensions import override

from schemas import decisions as d
from schemas import events as e
from schemas.licences import COPIES, SOURCES, copy_name
from schemas.names import LICENCE_CONF_KEY, LICENCE_TOKEN_KEY
from schemas.objects import ClassView, Gone, NamespaceView, SecretView, Stamp
from tests.binder.scene import Decisions, Scene

HOME = "cozy-gpu"


class LicenceScene(Scene):
    """A scene in which licences are watched too. `written`: what was decided and not written yet."""

    def __init__(self, *, synced: bool = True) -> None:
        self.written: list[tuple[Stamp, d.Decision]] = []
        super().__init__(synced=synced)
        self.objects |= {SOURCES: {}, COPIES: {}}
        if synced:
            for kind in (SOURCES, COPIES):
                self.relist(kind)

    @override
    def send_bytes(self, body: bytes) -> Decisions:
        """Let the binder hear one message, and keep what it says about licences."""
        decided = super().send_bytes(body)
        generation = self.book.state.generation
        self.written += [(Stamp(generation, self.sequence, place), one) for place, one in enumerate(decided)]
        return decided

    def secret(self, kind: str, view: SecretView) -> Decisions:
        """Write a Secret and let its watch say so."""
        self.rv += 1
        fresh = replace(view, rv=str(self.rv), uid=view.uid or f"uid-{self.rv}")
        self.objects[kind][fresh.key] = fresh
        return self.watch(kind, [fresh])

    def source(self, digest: str, *keys: str, name: str = "lic") -> Decisions:
        """Write the source: with a token unless other keys are said."""
        held = keys or (LICENCE_TOKEN_KEY, LICENCE_CONF_KEY)
        return self.secret(SOURCES, SecretView(name, f"uid-{name}", "", HOME, keys=held, digest=digest))

    def licensed(self, name: str = "l40s-24c", source: str = "lic", mode: str = "VGPU") -> Decisions:
        """Write a class."""
        return self.show(ClassView(name, "", "", resource=f"nvidia.com/{name}", mode=mode, licence_secret=source))

    def home(self, name: str, *, vgpu: bool = True, deleting: bool = False) -> Decisions:
        """Write a namespace."""
        return self.show(NamespaceView(name, "", "", vgpu=vgpu, deleting=deleting))

    def lands(self) -> Decisions:
        """Write all that was decided, as the projector does, and let outcomes and watches tell."""
        said: Decisions = ()
        todo, self.written = self.written, []
        for stamp, decision in todo:
            match decision:
                case d.LicenceCopied():
                    said += self._copied(stamp, decision)
                case d.LicenceDropped():
                    said += self._dropped(stamp, decision)
                case d.LicenceMissing():
                    said += self.outcome("show-licence", "", decision.name, stamp)
                case _:
                    pass
        return said

    def outcome(self, action: str, namespace: str, name: str, stamp: Stamp, code: int = 0, why: str = "") -> Decisions:
        """Let the projector tell how a write ended."""
        return self.send(e.Outcomes((e.Outcome(action, namespace, name, "", stamp, code, why),)))

    def _copied(self, stamp: Stamp, decision: d.LicenceCopied) -> Decisions:
        key, place = f"{decision.namespace}/{decision.name}", (decision.namespace, decision.name)
        standing, source = self.objects[COPIES].get(key), self.objects[SOURCES].get(decision.source)
        if not isinstance(source, SecretView) or source.digest != decision.digest:
            return self.outcome("copy-licence", *place, stamp)
        if isinstance(standing, SecretView) and standing.stamp == Stamp():
            return self.outcome("copy-licence", *place, stamp, 409, "NameTaken")
        uid = standing.uid if standing is not None else ""
        copy = self.copy(decision.namespace, decision.gpu_class, decision.digest, stamp, uid)
        return self.outcome("copy-licence", *place, stamp) + self.secret(COPIES, copy)

    def copy(self, namespace: str, gpu_class: str, digest: str, stamp: Stamp, uid: str = "") -> SecretView:
        """Return a copy as the projector writes it."""
        name = copy_name(gpu_class)
        return SecretView(name, uid, "", namespace, digest=digest, gpu_class=gpu_class, intact=True, stamp=stamp)

    def _dropped(self, stamp: Stamp, decision: d.LicenceDropped) -> Decisions:
        key = f"{decision.namespace}/{decision.name}"
        standing = self.objects[COPIES].get(key)
        said = self.outcome("drop-licence", decision.namespace, decision.name, stamp)
        if isinstance(standing, SecretView) and standing.uid == decision.uid and standing.intact:
            return said + self.remove(COPIES, key)
        return said

    def calm(self) -> None:
        """Let everything that was decided land, and time pass, until nothing is decided any more."""
        for _ in range(12):
            self.settled()
            self.lands()
            self.tick(31)
        for _ in range(20):
            self.tick(31)
            self.lands()
        assert not [one for _, one in self.written if isinstance(one, d.LicenceCopied | d.LicenceDropped)]

    def copies(self) -> dict[str, str]:
        """Return the copies that stand, by key: their digests."""
        return {key: view.digest for key, view in self.objects[COPIES].items() if isinstance(view, SecretView)}

    def tampered(self, key: str) -> Decisions:
        """Let somebody change a copy."""
        view = self.objects[COPIES][key]
        assert isinstance(view, SecretView)
        return self.secret(COPIES, replace(view, digest="changed", intact=False))

    def lost(self, kind: str, key: str) -> Gone:
        """Delete a Secret while nobody watches."""
        return self.forget(kind, key)
