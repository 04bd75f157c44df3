"""Licences of vGPUs: namespaces that may use them, the hoster's Secret, and tenants' hands on its copies (L1-L4)."""

from base64 import b64encode

from typing_extensions import override

from binder.kube import PatchKind
from deploy.world.manifests import Obj, encode
from schemas.kinds import GPU_CLASS, NAMESPACE, SECRET
from schemas.names import CLASS_LABEL, LICENCE_CONF_KEY, LICENCE_TOKEN_KEY, VGPU_LABEL
from tests.simulation.acts.act import Act, create, delete, hands
from tests.simulation.labels import COPY, LICENCE, SYSTEM, TENANTS
from tests.simulation.world import World


class Entitle(Act, frozen=True):
    """A tenant's namespace may use vGPUs, or may not any more."""

    tenant: int
    may: bool = True

    @override
    def begin(self, world: World) -> None:
        """Label it."""
        patch = encode({"metadata": {"labels": {VGPU_LABEL: "true" if self.may else None}}})
        hands(world, world.cluster.api.patch(NAMESPACE, "", TENANTS[self.tenant], patch, kind=PatchKind.MERGE))


class NeedLicence(Act, frozen=True):
    """Guests of a class need a licence, or none any more."""

    name: str = "slice"
    needs: bool = True

    @override
    def begin(self, world: World) -> None:
        """Edit the class."""
        patch = encode({"spec": {"license": {"secretName": LICENCE} if self.needs else None}})
        hands(world, world.cluster.api.patch(GPU_CLASS, "", self.name, patch, kind=PatchKind.MERGE))


class WriteLicence(Act, frozen=True):
    """The hoster writes the licence, or another one; `token` 0: without its token."""

    token: int = 1

    @override
    def begin(self, world: World) -> None:
        """Write the Secret."""
        data = {LICENCE_CONF_KEY: _told(f"conf-{self.token}"), "unrelated": _told("unrelated")}
        if self.token:
            data[LICENCE_TOKEN_KEY] = _told(f"token-{self.token}")
        _write(world, SYSTEM, LICENCE, {"data": data})


class DropLicence(Act, frozen=True):
    """The hoster deletes the licence: copies that exist stay (L3)."""

    @override
    def begin(self, world: World) -> None:
        """Delete the Secret."""
        delete(world, SECRET, f"{SYSTEM}/{LICENCE}")


class Tamper(Act, frozen=True):
    """A tenant changes its copy, deletes it, takes its label off, or makes a Secret of its own under that name."""

    tenant: int
    way: str = "change"

    @override
    def begin(self, world: World) -> None:
        """Do it."""
        tenant = TENANTS[self.tenant]
        world.tampered[f"{tenant}/{COPY}"] = world.now
        stands = world.cluster.find(SECRET, f"{tenant}/{COPY}") is not None
        match self.way:
            case "change" if stands:
                _write(world, tenant, COPY, {"data": {LICENCE_TOKEN_KEY: _told("token of a tenant")}})
            case "delete":
                delete(world, SECRET, f"{tenant}/{COPY}")
            case "unlabel" if stands:
                _write(world, tenant, COPY, {"metadata": {"labels": {CLASS_LABEL: None}}})
            case "own" if not stands:
                _write(world, tenant, COPY, {"data": {"mine": _told("mine")}})
            case _:
                pass


def _write(world: World, namespace: str, name: str, fields: Obj) -> None:
    if world.cluster.find(SECRET, f"{namespace}/{name}") is None:
        create(world, SECRET, namespace, {"metadata": {"name": name}} | fields)
        return
    if namespace == SYSTEM:
        fields = {"data": {LICENCE_TOKEN_KEY: None} | fields["data"]}
    hands(world, world.cluster.api.patch(SECRET, namespace, name, encode(fields), kind=PatchKind.MERGE))


def _told(text: str) -> str:
    return b64encode(text.encode()).decode()
