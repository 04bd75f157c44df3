"""All roles as `gpubinder run` serves them, over a real NATS and the model cluster of the examples, to be scraped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from binder.access import Access
from binder.jetstream import connect
from binder.stream_journal import JetStreamJournal
from binder.stream_setup import create_streams
from deploy.adopt import adopt_fresh
from deploy.child import fetch, free_ports
from deploy.cluster_in_memory import Cluster, running
from deploy.front_door import Door
from deploy.local import LocalNats
from deploy.role_names import Role
from deploy.roles import Place
from deploy.serving import Serving, serve
from deploy.world.dump import read_manifests
from schemas.admission import ACCOUNTS_GROUP
from schemas.streams import DECISIONS, EVENTS
from tests.deploy.scraping import Scrape
from tests.deploy.waiting import until

NAMESPACE = "gpubinder-system"
EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
PLACED, WAITING = 5, 3
"""So many of the example VMs find a node, and so many no room."""


class Stage:
    """What a test asks: scrapes, pages, the cluster."""

    def __init__(self, cluster: Cluster, place: Place, nats: LocalNats, port: int, door: Door) -> None:
        self.cluster, self.place, self.nats, self.port, self.door = cluster, place, nats, port, door

    async def page(self, path: str) -> tuple[int, str]:
        """Return what a page says, and its HTTP status."""
        status, body = await asyncio.to_thread(fetch, self.port, path, timeout=20)
        return status, body.decode()

    async def scrape(self) -> Scrape:
        """Scrape once."""
        return Scrape((await self.page("/metrics"))[1])

    async def quiet(self) -> tuple[Scrape, dict[str, int]]:
        """Scrape between two looks that find the streams alike, both followed to their end; also return these."""

        async def look() -> tuple[Scrape, dict[str, int]] | None:
            before = await self.ends()
            found = await self.scrape()
            # An input is folded a moment before its frame is durable, and counted then.
            read = {
                EVENTS: int(found.value("gpubinder_inputs_total")),
                DECISIONS: int(found.value("gpubinder_log_sequence")),
            }
            # What was sent a moment ago is neither stored nor read yet.
            sent = sum(one.value for one in found.all("gpubinder_append_waiting_seconds"))
            return (found, before) if read == before and not sent and await self.ends() == before else None

        return await until(look)

    async def ends(self) -> dict[str, int]:
        """Return where the streams end."""
        return {stream: (await self.place.journal.info(stream)).last for stream in (EVENTS, DECISIONS)}

    async def scraped(self, so: Callable[[Scrape], bool]) -> Scrape:
        """Scrape until it is so."""

        async def look() -> Scrape | None:
            found = await self.scrape()
            return found if so(found) else None

        return await until(look, seconds=180)


@asynccontextmanager
async def stage(
    nats: LocalNats,
    directory: Path,
    *,
    roles: tuple[Role, ...] = tuple(Role),
    budget_metrics: bool = False,
    tell_end_s: float = 0,
    limits: Mapping[str, int] | None = None,
) -> AsyncIterator[Stage]:
    """Serve the roles on the example cluster; where all are served, its VMs are started when the binder may place.

    `limits`: how many bytes the streams may hold.
    """
    connection = await connect(Access((nats.url,)), lambda _why: None)
    journal = JetStreamJournal(connection)
    await create_streams(journal, replicas=1, limits=limits)
    cluster = Cluster(read_manifests(EXAMPLES))
    cluster.api.writes.seed_namespace(NAMESPACE)
    user = cluster.api.as_user("program", f"{ACCOUNTS_GROUP}{NAMESPACE}")
    place = Place(user, journal, connection, NAMESPACE, "stage-1", "0.1.0")
    await adopt_fresh(cluster.api, journal, NAMESPACE, place.program)
    status, webhook = free_ports(2)
    door = Door(directory / "tls")
    serving = Serving(
        roles, door, webhook, status_port=status, host="127.0.0.1", budget_metrics=budget_metrics, tell_end_s=tell_end_s
    )
    listening = asyncio.Event()
    try:
        async with running(serve(place, serving, listening.set)) as also:
            await listening.wait()
            here = Stage(cluster, place, nats, status, door)
            if set(roles) == set(Role):
                assert place.standing.webhooks is not None
                cluster.register(place.standing.webhooks, NAMESPACE)
                await here.scraped(all_known)
                for part in cluster.parts():
                    also(part)
                cluster.load(cluster.starting)
            yield here
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await connection.close()


def all_known(scrape: Scrape) -> bool:
    """Say whether every kind is known."""
    kinds = scrape.all("gpubinder_kind_current")
    return bool(kinds) and all(one.value for one in kinds)


def settled(scrape: Scrape) -> bool:
    """Say whether the example VMs are served, some placed, the others told why they wait, and classes are counted."""
    stand = [
        sum(one.value for one in scrape.all("gpubinder_sets", standing=standing)) for standing in ("placed", "waiting")
    ]
    unwritten = sum(one.value for one in scrape.all("gpubinder_writes_open"))
    return stand == [PLACED, WAITING] and not unwritten and bool(scrape.all("gpubinder_class_units"))
