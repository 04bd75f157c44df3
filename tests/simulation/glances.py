"""Why a review may have got no answer: what was in the program's way between its beginning and its end."""

import msgspec

from tests.simulation.processes import Process
from tests.simulation.weather import DESK
from tests.simulation.world import World, leader

FOLLOWS_S = 1.0
"""So long after its start a webhook may still look for the end of the log, and for who announced itself there."""


class Glance(msgspec.Struct, frozen=True):
    """The world at one moment: who leads, since which epoch, and which webhooks run; all by their lives."""

    at: float
    leader: str
    webhooks: tuple[str, ...]


def glance(world: World) -> Glance:
    """Look at a world."""
    found = leader(world)
    epoch = found.binder.follower.book.state.epoch if found and found.binder and found.binder.follower else 0
    return Glance(
        world.now, f"{found.lane.name}/{epoch}" if found else "", tuple(one.lane.name for one in _webhooks(world))
    )


def in_the_way(world: World, since: Glance, *, heard: bool) -> str:
    """Say what kept a review that began then from its answer until now; '' where nothing did.

    `heard`: the webhook itself said that it has no answer; else nobody heard anything of it.
    """
    now = glance(world)
    if world.weather.last_s(DESK) > since.at and not heard:
        return "the API server could not reach the webhook"
    if world.weather.last_s() > since.at:
        return "NATS or the API server was in trouble"
    if not since.leader or since.leader != now.leader:
        return "nobody led, or another one did"
    lanes = [process.lane for process in _webhooks(world)]
    found = leader(world)
    lanes += [found.lane] if found is not None else []
    if any(lane.frozen_until > since.at for lane in lanes):
        return "the webhook or the leader stood still"
    young = [name for name, at in world.born.items() if name.startswith("webhooks") and at + FOLLOWS_S > since.at]
    if young or since.webhooks != now.webhooks:
        return "a webhook died, or had just begun"
    return ""


def _webhooks(world: World) -> list[Process]:
    return [process for process in world.processes.values() if process.role == "webhooks"]
