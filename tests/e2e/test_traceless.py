"""Requests that are never stored leave no trace: dry runs, and creates that somebody else refuses after us (C25)."""

import asyncio

import pytest

from schemas.events import PodRequest, VmiRequest, decode_event
from schemas.kinds import GPU_BUDGET, GPU_CLAIM, VMI
from schemas.streams import EVENTS
from tests.cluster.api import APPLY, Object, Refused
from tests.cluster.nodes import L40S
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_refusals import vmi

TRIES = 20
ENTRY = '[{"className":"l40s"}]'


async def requests(program: Stack, since: int) -> int:
    """Return how many admission requests stand on EVENTS after a place."""
    last = (await program.journal.info(EVENTS)).last
    found = [await program.journal.get(EVENTS, sequence) for sequence in range(since + 1, last + 1)]
    return sum(isinstance(decode_event(one.body), VmiRequest | PodRequest) for one in found if one is not None)


async def test_what_is_not_stored_leaves_nothing(program: Stack) -> None:
    """C25: server-side applies that are dry runs, VMIs that virt-api refuses after us, orders whose name is taken.

    No claim, event or use comes of any, and dry runs are on no stream; then a good VM starts within the one unit.
    """
    api, tenant = program.api, program.tenant
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 1})
    budget = {"apiVersion": GPU_BUDGET.api_version, "kind": GPU_BUDGET.kind, "metadata": {"name": "b"}}
    await api.create(GPU_BUDGET.path(tenant), budget | {"spec": {"hard": {"gpus.cozystack.io": 1}}})
    before = (await program.journal.info(EVENTS)).last

    async def dry(number: int) -> None:
        options = {"dryRun": "All", "fieldManager": "tenant", "force": "true"}
        order = {"apiVersion": GPU_CLAIM.api_version, "kind": GPU_CLAIM.kind, "metadata": {"name": f"c{number}"}}
        order |= {"spec": {"className": "l40s", "count": 1}}
        for path, body in (
            (VMI.path(tenant, f"vm{number}"), vmi(ENTRY, f"vm{number}")),
            (GPU_CLAIM.path(tenant, f"c{number}"), order),
        ):
            await api.patch(path, body, content=APPLY, **options)

    await asyncio.gather(*(dry(number) for number in range(TRIES)))
    assert await requests(program, before) == 0
    for number in range(TRIES):
        with pytest.raises(Refused, match="volume name must be unique"):
            await api.create(VMI.path(tenant), refused_later(f"late{number}"))
    assert await program.claims() == []
    assert await program.events() == []

    def used(found: Object | None) -> bool:
        return ((found or {}).get("status") or {}).get("used") == {"gpus.cozystack.io": 0}

    await api.until(GPU_BUDGET.path(tenant, "b"), used)
    await program.vm("good", [("l40s", 1)])
    assert await program.running("good") == "n1"

    async def one() -> bool:
        found = await api.get(GPU_BUDGET.path(tenant, "b"))
        return bool(found["status"]["used"] == {"gpus.cozystack.io": 1})

    await eventually(one, "the budget counts the good VM alone")
    assert len(await program.claims()) == 1


def refused_later(name: str) -> Object:
    """Return a VMI that is in order for us and not for virt-api: two volumes of one name."""
    body = vmi(ENTRY, name)
    body["spec"]["volumes"] = [{"name": "a", "emptyDisk": {"capacity": "1Gi"}}] * 2
    return body


async def test_long_names_stay_apart(program: Stack) -> None:
    """C60: names as long as KubeVirt can start that differ at their very end, and a dotted one, are three VMs to all.

    Longer ones it accepts and never makes a launcher for: the name of that begins with `virt-launcher-`.
    """
    await program.gpu_class("l40s", L40S)
    await program.node("n1", {L40S: 3})
    stem = "v" * 190 + "." + "w" * 46
    names = [f"{stem}1", f"{stem}2", "a.b"]
    assert [len(f"virt-launcher-{name}-") for name in names[:2]] == [253, 253]

    for name in names:
        await program.vm(name, [("l40s", 1)])

    for name in names:
        assert await program.running(name) == "n1"
    claims = await program.claims()
    assert len({claim["metadata"]["name"] for claim in claims}) == len(names)
    assert all(len(claim["metadata"]["name"]) <= 253 for claim in claims)
    assert [len(await program.claims(name)) for name in names] == [1, 1, 1]
    assert len((await program.told()).sets) == len(names)
