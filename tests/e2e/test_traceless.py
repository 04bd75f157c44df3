"""Requests that are never stored leave no trace: dry runs, and creates that somebody else refuses after us (C25)."""

import asyncio
from collections import Counter
from functools import partial

import pytest

from schemas.events import decode_event
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, SECRET, VMI, WORKLOAD, Resource
from schemas.names import BUDGET_CLASS_PREFIX
from schemas.streams import EVENTS
from tests.cluster.api import APPLY, Object, Refused
from tests.cluster.nodes import H100, L40S, L40S_24C
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.tenants import claim
from tests.e2e.test_refusals import vmi
from webhooks.asks import Request

TRIES = 20
ENTRY = '[{"className":"l40s"}]'


async def requests(program: Stack, since: int) -> Counter[str]:
    """Return how many admission requests of each kind stand on EVENTS after a place."""
    last = (await program.journal.info(EVENTS)).last
    found = [await program.journal.get(EVENTS, sequence) for sequence in range(since + 1, last + 1)]
    events = [decode_event(one.body) for one in found if one is not None]
    return Counter(type(event).__name__ for event in events if isinstance(event, Request))


async def test_what_is_not_stored_leaves_nothing(program: Stack) -> None:
    """C25: server-side applies that are dry runs, VMIs that virt-api refuses after us, orders whose name is taken.

    No claim, event, Secret, usage record or use of a budget comes of any, and dry runs are on no stream; then a good VM
    starts within its one unit.
    """
    api, tenant = program.api, program.tenant
    await program.gpu_class("l40s", L40S)
    await program.gpu_class("h100", H100)
    await program.node("n1", {L40S: 1, H100: 2})
    await program.order("taken", "h100")
    await program.held("taken", "Bound")
    budget = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}}
    hard = {f"{BUDGET_CLASS_PREFIX}l40s": 1, f"{BUDGET_CLASS_PREFIX}h100": 2}
    await api.create(GPU_BUDGET.path(tenant), budget | {"spec": {"hard": hard}})
    before = (await program.journal.info(EVENTS)).last

    async def dry(number: int) -> None:
        options = {"dryRun": "All", "fieldManager": "tenant", "force": "true"}
        for path, body in (
            (VMI.path(tenant, f"vm{number}"), vmi(ENTRY, f"vm{number}")),
            (GPU_CLAIM.path(tenant, f"c{number}"), claim(f"c{number}", "l40s")),
        ):
            await api.patch(path, body, content=APPLY, **options)

    await asyncio.gather(*(dry(number) for number in range(TRIES)))
    assert not await requests(program, before)
    for number in range(TRIES):
        with pytest.raises(Refused, match="volume name must be unique"):
            await api.create(VMI.path(tenant), refused_later(f"late{number}"))
        # Ours is asked first, and passes it.
        with pytest.raises(Refused, match="already exists"):
            await api.create(GPU_CLAIM.path(tenant), claim("taken", "h100"))
    asked = await requests(program, before)
    assert asked["OrderRequest"] == TRIES, asked

    async def uses(l40s: int) -> bool:
        used = ((await api.get(GPU_BUDGET.path(tenant, "b"))).get("status") or {}).get("used")
        return bool(used == {f"{BUDGET_CLASS_PREFIX}l40s": l40s, f"{BUDGET_CLASS_PREFIX}h100": 1})

    await eventually(partial(uses, 0), "the budget counts the order that stood before")
    assert await program.events() == []
    assert await names_of(program, GPU_CLAIM) == ["taken"]
    assert await names_of(program, SECRET) == []
    assert await names_of(program, WORKLOAD) == ["gpuclaim-taken"]
    await program.vm("good", [("l40s", 1)])
    assert await program.running("good") == "n1"
    await eventually(partial(uses, 1), "the budget counts the good VM alone")
    assert len(await program.claims("good")) == 1


async def names_of(program: Stack, kind: Resource) -> list[str]:
    """Return the names of the tenant's objects of a kind."""
    return [one["metadata"]["name"] for one in (await program.api.get(kind.path(program.tenant)))["items"]]


def refused_later(name: str) -> Object:
    """Return a VMI that is in order for us and not for virt-api: two volumes of one name."""
    body = vmi(ENTRY, name)
    body["spec"]["volumes"] = [{"name": "a", "emptyDisk": {"capacity": "1Gi"}}] * 2
    return body


async def test_long_names_stay_apart(program: Stack) -> None:
    """C60: names as long as KubeVirt can start that differ at their very end, and a dotted one, are three VMs to all.

    So it is with a licensed class whose name is longer than a label value, and two units each: claims, devices, volume
    and the licence's copy have names that the server takes. Longer names of VMs it accepts and never makes a launcher
    for: the name of that begins with `virt-launcher-`.
    """
    long = "c" * 60 + "-24c"
    api, tenant = program.api, program.tenant
    await api.create(
        SECRET.path(program.system), {"metadata": {"name": "lic"}, "data": {"client_configuration_token.tok": "VA=="}}
    )
    await program.entitle()
    await program.gpu_class(long, L40S_24C, "VGPU", maxCount=2, license={"secretName": "lic"})
    await program.node("n1", {L40S_24C: 6})
    stem = "v" * 190 + "." + "w" * 46
    names = [f"{stem}1", f"{stem}2", "a.b"]
    assert [len(f"virt-launcher-{name}-") for name in names[:2]] == [253, 253]

    for name in names:
        await program.vm(name, [(long, 2)])

    for name in names:
        assert await program.running(name) == "n1"
        assert await program.bound(name) == ["n1"]
        spec = (await api.get(VMI.path(tenant, name)))["spec"]
        gpus = [(gpu["name"], gpu["deviceName"]) for gpu in spec["domain"]["devices"]["gpus"]]
        assert gpus == [("gpubinder-0-0", L40S_24C), ("gpubinder-0-1", L40S_24C)]
        volume = spec["volumes"][-1]
        assert volume["name"] == "gpubinder-licence"
        await api.until(SECRET.path(tenant, volume["secret"]["secretName"]), lambda found: found is not None)
    claims = await program.claims()
    assert len({claim["metadata"]["name"] for claim in claims}) == len(names)
    assert all(len(claim["metadata"]["name"]) <= 253 for claim in claims)
    assert [len(await program.claims(name)) for name in names] == [1, 1, 1]
    assert len((await program.told()).sets) == len(names)
