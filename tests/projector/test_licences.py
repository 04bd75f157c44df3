"""Licences on a real API server: copied, renewed, restored, removed; a tenant's own Secret, a namespace that goes."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest

from binder.kube_client import KubeClient
from deploy.world.faults import Call, FaultyKube
from schemas.kinds import CONFIGMAP, GPU_CLASS, NAMESPACE, SECRET
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.cluster.users import GPUBINDER
from tests.projector.licence_loop import Loop, looping

COPY = "gpu-licence-l40s-24c"
TOKEN, CONF = "client_configuration_token.tok", "gridd.conf"
ONE, TWO, OTHER = "very-secret-token-one", "very-secret-token-two", "FeatureType=1"


def b64(text: str) -> str:
    """Return what the API server stores."""
    return base64.b64encode(text.encode()).decode()


class Licensing:
    """A licence namespace, tenants, and what stands in them. `calls`: what was asked of the API server so far."""

    def __init__(self, api: Api, home: str, loop: Loop, tenants: list[str], calls: list[Call]) -> None:
        self.api, self.home, self.loop, self.tenants, self.calls = api, home, loop, tenants, calls
        self.source = SECRET.path(home, "lic")

    async def tenant(self, name: str, **metadata: Any) -> str:  # noqa: ANN401 - any JSON
        """Create a namespace that may use vGPUs."""
        full = f"{self.home}-{name}"
        self.tenants.append(full)
        labels = {"cozystack.io/vgpu": "true"}
        await self.api.create(NAMESPACE.path(), {"metadata": {"name": full, "labels": labels, **metadata}})
        return full

    async def copy(self, tenant: str, so: Callable[[Object | None], bool]) -> Object | None:
        """Wait until a tenant's copy is as it should be."""
        return await self.api.until(SECRET.path(tenant, COPY), so)

    async def entitle(self, tenant: str, value: str | None) -> None:
        """Set the entitlement of a namespace."""
        await self.api.patch(NAMESPACE.path(name=tenant), {"metadata": {"labels": {"cozystack.io/vgpu": value}}})


def holds(**data: str) -> Callable[[Object | None], bool]:
    """Say whether a Secret holds exactly this."""
    wanted = {key.replace("__", "."): b64(value) for key, value in data.items()}
    return lambda found: found is not None and found.get("data") == wanted


def gone(found: Object | None) -> bool:
    """Say whether there is no such object."""
    return found is None


@pytest.fixture
async def here(control_plane: ControlPlane, api: Api, namespace: str) -> AsyncIterator[Licensing]:
    """A class with a licence whose source stands in a namespace that the settings name, and the loop at work."""
    home, tenants = f"{namespace}-lic", list[str]()
    await api.create(NAMESPACE.path(), {"metadata": {"name": home}})
    settings = {"metadata": {"name": "gpubinder-settings"}, "data": {"licenceNamespace": home}}
    await api.create(f"/api/v1/namespaces/{namespace}/configmaps", settings)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "dls", "uid": (await dls(api, home))}
    source = {
        "metadata": {
            "name": "lic",
            "ownerReferences": [owner],
            "annotations": {"by": "hoster"},
            "labels": {"app": "dls"},
        },
        "type": "example.org/licence",
        "data": {TOKEN: b64(ONE), CONF: b64(OTHER), "other": b64("not to be copied")},
    }
    await api.create(SECRET.path(home), source)
    spec = {"resourceName": "nvidia.com/L40S-24C", "mode": "VGPU", "license": {"secretName": "lic"}}
    await api.create(GPU_CLASS.path(), {**KIND, "metadata": {"name": "l40s-24c"}, "spec": spec})
    kube, calls = await KubeClient.connect(kubeconfig=str(control_plane.kubeconfig(GPUBINDER))), list[Call]()

    async def noting(call: Call) -> None:
        calls.append(call)

    try:
        async with looping(FaultyKube(kube, noting), namespace) as loop:
            yield Licensing(api, home, loop, tenants, calls)
    finally:
        if await api.find(GPU_CLASS.path(name="l40s-24c")) is not None:
            await api.patch(GPU_CLASS.path(name="l40s-24c"), {"metadata": {"finalizers": None}})
            await api.delete(GPU_CLASS.path(name="l40s-24c"))
        await kube.close()
        for name in (home, *tenants):
            if await api.find(NAMESPACE.path(name=name)) is not None:
                with suppress(Refused):  # one that was going may be gone by now
                    await api.delete(NAMESPACE.path(name=name))


async def dls(api: Api, home: str) -> str:
    """Return the uid of what owns the source: a copy with that owner in another namespace would be collected."""
    made = await api.create(CONFIGMAP.path(home), {"metadata": {"name": "dls"}})
    return str(made["metadata"]["uid"])


KIND = {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind}


async def test_a_copy_holds_token_and_configuration_and_nothing_else(here: Licensing) -> None:
    """L1, C51: named by rule, labelled; no type, label, annotation or further key of the source; it follows it."""
    tenant = await here.tenant("a")

    made = await here.copy(tenant, holds(client_configuration_token__tok=ONE, gridd__conf=OTHER))
    await here.api.patch(here.source, {"data": {TOKEN: b64(TWO), CONF: None}})
    await here.copy(tenant, holds(client_configuration_token__tok=TWO))

    assert made is not None
    assert made["type"] == "Opaque"
    assert made["metadata"]["labels"] == {
        "cozystack.io/gpu-class": "l40s-24c",
        "app.kubernetes.io/managed-by": "gpubinder",
    }
    assert sorted(made["metadata"]["annotations"]) == ["cozystack.io/gpu-licence-digest", "cozystack.io/gpu-stamp"]
    assert "ownerReferences" not in made["metadata"]


async def test_values_are_on_no_stream_and_in_no_log(here: Licensing, capfd: pytest.CaptureFixture[str]) -> None:
    """T16: neither token, nor its base64, nor a digest that could be tried out without the key."""
    tenant = await here.tenant("a")
    await here.copy(tenant, lambda found: found is not None)
    await here.api.patch(here.source, {"data": {TOKEN: b64(TWO)}})
    await here.copy(tenant, holds(client_configuration_token__tok=TWO, gridd__conf=OTHER))

    said = here.loop.bodies() + "".join(capfd.readouterr()).encode()

    for value in (ONE, TWO, OTHER, "not to be copied"):
        assert value.encode() not in said
        assert b64(value).rstrip("=").encode() not in said


async def test_a_missing_source_takes_nothing_away(here: Licensing) -> None:
    """L3: copies are kept, none is made, the class says what is missing, and that it is there again."""
    tenant = await here.tenant("a")
    await here.copy(tenant, lambda found: found is not None)

    await here.api.patch(here.source, {"data": {TOKEN: None}})
    path = GPU_CLASS.path(name="l40s-24c")
    told = await here.api.until(path, lambda found: condition(found).get("status") == "True")
    late = await here.tenant("b")
    await here.api.patch(here.source, {"data": {TOKEN: b64(TWO)}})
    await here.api.until(path, lambda found: condition(found).get("status") == "False")
    for name in (tenant, late):
        await here.copy(name, holds(client_configuration_token__tok=TWO, gridd__conf=OTHER))

    assert condition(told)["reason"] == "TokenKeyMissing"
    assert "has no key client_configuration_token.tok" in condition(told)["message"]


def condition(found: Object | None) -> Object:
    """Return the class's condition about its licence."""
    listed = ((found or {}).get("status") or {}).get("conditions") or []
    return next((one for one in listed if one["type"] == "LicenseSecretMissing"), {})


async def test_a_tenants_own_secret_is_left_as_it_is(here: Licensing) -> None:
    """C31, L4: byte-identical whatever the label does, a Warning tells; the copy comes when the name is free."""
    tenant, name = f"{here.home}-a", NAMESPACE.path(name=f"{here.home}-a")
    source = await here.api.get(here.source)
    here.tenants.append(tenant)
    await here.api.create(NAMESPACE.path(), {"metadata": {"name": tenant}})
    own = await here.api.create(SECRET.path(tenant), {"metadata": {"name": COPY}, "data": {"mine": b64("1")}})
    other = {"metadata": {"name": "own", "labels": {"cozystack.io/gpu-class": "l40s-24c"}}, "data": {"mine": b64("2")}}
    labelled = await here.api.create(SECRET.path(tenant), other)
    await here.entitle(tenant, "true")

    events = f"/apis/events.k8s.io/v1/namespaces/{tenant}/events"
    told = await here.api.until(events, lambda found: bool(found and found["items"]))
    await here.entitle(tenant, None)
    await here.api.until(name, lambda found: "cozystack.io/vgpu" not in (found or {})["metadata"].get("labels", {}))
    kept = [await here.api.find(SECRET.path(tenant, one)) for one in (COPY, "own")]
    await here.api.delete(SECRET.path(tenant, COPY))
    await here.entitle(tenant, "true")
    await here.copy(tenant, holds(client_configuration_token__tok=ONE, gridd__conf=OTHER))

    assert told is not None
    assert (told["items"][0]["reason"], told["items"][0]["regarding"]["name"]) == ("LicenceNotCopied", COPY)
    assert "it is left alone: rename or delete it" in told["items"][0]["note"]
    assert kept == [own, labelled]
    assert await here.api.get(here.source) == source
    assert await here.api.find(SECRET.path(tenant, "own")) == labelled


async def test_what_is_done_to_a_copy_is_undone(here: Licensing) -> None:
    """C31: edited or deleted, the copy is as it should be a moment later."""
    tenant = await here.tenant("a")
    right = holds(client_configuration_token__tok=ONE, gridd__conf=OTHER)
    await here.copy(tenant, right)

    await here.api.patch(SECRET.path(tenant, COPY), {"data": {TOKEN: b64("forged"), "more": b64("x")}})
    await here.copy(tenant, right)
    first = await here.copy(tenant, right)
    await here.api.delete(SECRET.path(tenant, COPY))
    again = await here.copy(tenant, lambda found: right(found) and found != first)

    assert again is not None


async def test_copies_go_with_the_label_and_with_the_licence(here: Licensing) -> None:
    """L2: a namespace's when its label stops being "true", a class's when its licence goes."""
    one, other = await here.tenant("a"), await here.tenant("b")
    for tenant in (one, other):
        await here.copy(tenant, lambda found: found is not None)

    await here.entitle(one, "false")
    await here.copy(one, gone)
    assert await here.api.find(SECRET.path(other, COPY)) is not None
    await here.api.patch(GPU_CLASS.path(name="l40s-24c"), {"spec": {"license": None}})
    await here.copy(other, gone)

    assert await here.api.find(here.source) is not None


async def test_a_namespace_that_goes_holds_up_no_other(here: Licensing) -> None:
    """C52: nothing is written into one that ends and hangs; the next one has its copy."""
    stuck = await here.tenant("a")
    held = {"metadata": {"name": "held", "finalizers": ["example.org/held"]}}
    await here.api.create(f"/api/v1/namespaces/{stuck}/configmaps", held)
    await here.copy(stuck, lambda found: found is not None)
    await here.api.delete(NAMESPACE.path(name=stuck))
    await here.copy(stuck, gone)
    here.calls.clear()

    await here.api.patch(here.source, {"data": {TOKEN: b64(TWO)}})
    fine = await here.tenant("z")
    await here.copy(fine, holds(client_configuration_token__tok=TWO, gridd__conf=OTHER))

    # Looked at, if at all; a write may have been under way when the namespace was seen to go.
    writes = [call for call in here.calls if call.namespace == stuck and call.verb in {"create", "replace", "patch"}]
    assert len(writes) <= 1
    assert await here.api.find(SECRET.path(stuck, COPY)) is None
    await here.api.patch(f"/api/v1/namespaces/{stuck}/configmaps/held", {"metadata": {"finalizers": None}})


async def test_the_settings_say_where_sources_are(here: Licensing) -> None:
    """Another licence namespace in the settings, and its Secret is the source from then on."""
    tenant = await here.tenant("a")
    await here.copy(tenant, lambda found: found is not None)
    moved = await here.tenant("vault")
    source = {"metadata": {"name": "lic"}, "data": {TOKEN: b64(TWO)}}
    await here.api.create(SECRET.path(moved), source)

    path = f"/api/v1/namespaces/{here.home.removesuffix('-lic')}/configmaps/gpubinder-settings"
    await here.api.patch(path, {"data": {"licenceNamespace": moved}})

    await here.copy(tenant, holds(client_configuration_token__tok=TWO))
