"""The front desk as a service: its process ends in order under load, and one tenant's flood is its own affair."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from deploy.child import fetch, free_ports
from deploy.local import LocalNats
from schemas.events import VmiRequest, decode_event
from schemas.kinds import NAMESPACE, VMI
from schemas.streams import EVENTS
from tests.cluster.api import Refused
from tests.cluster.nodes import L40S
from tests.e2e.process import ALL, answers
from tests.e2e.stack import Stack
from tests.e2e.tenant import eventually
from tests.e2e.test_refusals import vmi
from webhooks.service import Patience

ENTRY = '[{"className":"l40s"}]'


async def started(parts: Stack, names: Sequence[str]) -> dict[str, int]:
    """Start processes, each with the roles of its name, or all; return the ports of their status pages."""
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    for name, port in ports.items():
        parts.processes.start(name, [name] if name in ALL else ALL, health=port)
    await parts.ready()
    return ports


def inside(port: int) -> float:
    """Return how many reviews a process is answering."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(fetch(port, "/metrics")[1].decode())
        for sample in family.samples
        if sample.name == "gpubinder_admission_reviews_inside"
    )


async def created(parts: Stack, namespace: str, name: str, text: str = ENTRY) -> str:
    """Create a VMI; return '' or how it was refused."""
    try:
        await parts.api.create(VMI.path(namespace), vmi(text, name))
    except Refused as refused:
        return str(refused.status["message"])
    return ""


async def test_a_process_that_is_ended_answers_what_it_took(parts: Stack) -> None:
    """SIGTERM with reviews under way: no longer ready, and each is answered by the binder of the same process."""
    assert isinstance(parts.nats, LocalNats)
    port = (await started(parts, ["gpubinder"]))["gpubinder"]
    child = parts.processes.children["gpubinder"]
    await parts.gpu_class("l40s", L40S)
    await eventually(lambda: asyncio.to_thread(answers, port, "/readyz"), "the process is ready")
    parts.nats.server.child.pause()
    since = time.monotonic()
    asked = [asyncio.create_task(created(parts, parts.tenant, f"vm{number}")) for number in range(5)]

    async def all_inside() -> bool:
        return await asyncio.to_thread(inside, port) == len(asked)

    async def draining() -> bool:
        status, body = await asyncio.to_thread(fetch, port, "/readyz")
        return status == 503 and "webhooks: draining" in body.decode()

    async def ended() -> bool:
        return not child.running

    await eventually(all_inside, "the reviews are inside")
    os.kill(child.pid, signal.SIGTERM)
    await eventually(draining, "the process says that it is draining")
    parts.nats.server.child.resume()

    quick = time.monotonic() - since < Patience().answer_s / 2
    told = await asyncio.gather(*asked)
    # Where all this took a busy machine seconds, a review may have run out of time: it is answered all the same.
    assert all(not one or (not quick and "nothing was booked, try again" in one) for one in told), told
    await eventually(ended, "the process ends")
    assert child.code == 0, child.tail()
    for stored in (number for number, refused in enumerate(told) if not refused):
        await parts.api.delete(VMI.path(parts.tenant, f"vm{stored}"))
    # The stack's own end needs somebody who answers.
    child.spawn()
    await parts.ready()


async def test_a_flood_holds_up_nobody_else(parts: Stack) -> None:
    """T13: while one namespace has more reviews waiting than its share, another's is put to the binder at once."""
    await started(parts, ALL)
    await parts.gpu_class("l40s", L40S)
    other = f"{parts.tenant}-calm"
    await parts.api.create(NAMESPACE.path(), {"metadata": {"name": other}})
    share = Patience().at_once
    seen = (await parts.journal.info(EVENTS)).last
    parts.processes.children["binder"].pause()
    since = time.monotonic()
    unknown = '[{"className":"unknown"}]'
    flood = [asyncio.create_task(created(parts, parts.tenant, f"vm{number}", unknown)) for number in range(3 * share)]

    found: Counter[str] = Counter()

    async def asked() -> Counter[str]:
        nonlocal seen
        last = (await parts.journal.info(EVENTS)).last
        while seen < last:
            seen += 1
            message = await parts.journal.get(EVENTS, seen)
            event = decode_event(message.body) if message else None
            if isinstance(event, VmiRequest):
                found[event.namespace] += 1
        return found

    async def full() -> bool:
        return (await asked())[parts.tenant] >= share

    async def heard() -> bool:
        return (await asked())[other] == 1

    await eventually(full, "the flood takes all of its share")
    calm = asyncio.create_task(created(parts, other, "calm"))
    await eventually(heard, "the other tenant's request is on the stream")
    ahead = (await asked())[parts.tenant]
    # Who got no answer in time makes room for the next ones of the flood.
    turns = 1 + int((time.monotonic() - since) / Patience().answer_s)
    parts.processes.children["binder"].resume()

    assert ahead <= turns * share
    assert "being admitted in namespace" not in await calm
    assert all(await asyncio.gather(*flood))
    await parts.api.delete(VMI.path(other))
    await parts.api.delete(NAMESPACE.path(name=other))


async def test_a_flood_of_refusals_fills_no_log(parts: Stack) -> None:
    """T13: a refused start that is tried again and again is on the stream once, and is told the sentence each time."""
    await started(parts, ["gpubinder"])
    before = (await parts.journal.info(EVENTS)).last
    text = '[{"className":"no-such-class"}]'

    since = time.monotonic()
    told = [await created(parts, parts.tenant, "vm", text) for _ in range(30)]
    minutes = int((time.monotonic() - since) / 60)

    late = [one for one in told if "does not exist" not in one]
    assert all("nothing was booked, try again" in one for one in late), late
    last = (await parts.journal.info(EVENTS)).last
    found = [await parts.journal.get(EVENTS, sequence) for sequence in range(before + 1, last + 1)]
    requests = [one for one in found if one and isinstance(decode_event(one.body), VmiRequest)]
    # A refusal is remembered for a minute, and one that came too late was never heard.
    assert len(requests) <= 1 + minutes + len(late)
    assert len(late) < len(told)
