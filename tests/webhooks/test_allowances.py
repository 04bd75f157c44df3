"""What the policies let pass, and only that: the program itself, the platform by hand, ends that are under way (F1)."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from schemas.kinds import GPU_CLAIM, GPU_CLASS, POD, SECRET
from tests.cluster.api import Api, Object, Refused
from tests.cluster.controlplane import ControlPlane
from tests.webhooks.given import launcher
from tests.webhooks.guarding import Guarded, denied, guarded
from tests.webhooks.test_policies import claim, copy, text

DRY = {"dryRun": "All"}
HELD = "example.org/held"
TAKEN_OFF = "put on and taken off by gpubinder alone"


@pytest.fixture
async def here(control_plane: ControlPlane, api: Api, namespace: str) -> AsyncIterator[Guarded]:
    """An API server that holds to the policies."""
    async with guarded(control_plane, api, namespace) as standing:
        yield standing


def finalizers(*names: str) -> Object:
    """Return a change of an object's finalizers."""
    return {"metadata": {"finalizers": list(names) or None}}


async def test_a_finalizer_of_ours_is_taken_off_by_others_only_at_an_end(here: Guarded) -> None:
    """F1, K2, N4: on classes and claims; not even the platform does while nobody deletes them, and then it alone."""
    name = f"class-{here.namespace}"
    body: Object = {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, "metadata": {"name": name}}
    body |= {"spec": {"resourceName": f"example.org/{name}", "mode": "Passthrough"}}
    ours = body | {"metadata": {"name": name, "finalizers": ["cozystack.io/gpu-class"]}}
    said = await denied(partial(here.admin.create, GPU_CLASS.path(), ours, **DRY))
    assert said.startswith(text("classes", f'gpuclasses.cozystack.io "{name}"'))
    await here.ours.create(GPU_CLASS.path(), ours)
    await here.ours.create(GPU_CLAIM.path(here.namespace), claim(finalizers=["cozystack.io/gpu-claim"]))
    for path in (GPU_CLASS.path(name=name), GPU_CLAIM.path(here.namespace, "mine")):
        with pytest.raises(Refused, match=TAKEN_OFF):
            await here.admin.patch(path, finalizers())
        with pytest.raises(Refused, match="shows what gpubinder decided"):
            await here.admin.patch(f"{path}/status", {"status": {"conditions": []}})
        await here.admin.patch(path, {"metadata": {"labels": {"team": "a"}}})
        await here.ours.patch(f"{path}/status", {"status": {"conditions": []}})
        await here.admin.delete(path)
        await here.admin.patch(path, finalizers())
        assert await here.admin.find(path) is None


async def test_our_gate_is_taken_off_by_hand_or_at_an_end(here: Guarded) -> None:
    """T25: a tenant lets no launcher go; we do, the platform does, and of what is being deleted nobody asks."""
    pod = launcher()
    for field in ("namespace", "ownerReferences", "generateName"):
        pod["metadata"].pop(field, None)
    pod["metadata"] |= {"name": "held", "finalizers": [HELD]}
    pod["spec"]["schedulingGates"] = [{"name": "cozystack.io/gpu"}, {"name": "example.org/other"}]
    await here.kubevirt.create(POD.path(here.namespace), pod)
    path, others = POD.path(here.namespace, "held"), {"spec": {"schedulingGates": [{"name": "example.org/other"}]}}
    ours: Object = {"spec": {"schedulingGates": [{"name": "cozystack.io/gpu"}]}}

    said = await denied(partial(here.tenant.patch, path, others, **DRY))
    assert said.startswith(text("gates", 'pods "held"') + "the scheduling gate cozystack.io/gpu is taken off by")
    for who, change in ((here.tenant, ours), (here.ours, others), (here.admin, others)):
        shown = await who.patch(path, change, **DRY)
        assert shown["spec"]["schedulingGates"] == change["spec"]["schedulingGates"]
    await here.tenant.delete(path)
    await here.tenant.patch(path, others)
    await here.tenant.patch(path, finalizers())
    assert await here.admin.find(path) is None


async def test_a_copy_that_goes_is_still_a_copy(here: Guarded) -> None:
    """L4: while it ends, finalizers of others may be taken off it; what it holds and what marks it stay."""
    path = SECRET.path(here.namespace, "copy")
    await here.ours.create(SECRET.path(here.namespace), copy(finalizers=[HELD]))
    changes: tuple[Object, ...] = (
        {"data": {"client_configuration_token.tok": "VUE="}},
        {"metadata": {"labels": {"cozystack.io/gpu-class": None}}},
    )
    await denied(partial(here.tenant.patch, path, finalizers(), **DRY))
    await here.tenant.delete(path)

    for change in changes:
        with pytest.raises(Refused, match="is a copy of a licence and written by gpubinder alone"):
            await here.tenant.patch(path, change, **DRY)
    await here.tenant.patch(path, finalizers())
    assert await here.admin.find(path) is None
