"""Performs effects: one arm for each, every one safe to repeat from any point, none with opinions."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import assert_never

from binder.kube import ApiError, Kube
from projector import render
from projector.claims import ClaimWriter
from projector.effects import AnyEffect, CreateClaim, DropClaim, DropPod, Pin, Stage, Warn, WriteStatus
from projector.pins import PinWriter
from projector.pods import drop_pod
from projector.reads import namespace_is_over
from projector.verdicts import LANDED, SETTLED, Verdict, again, judged
from schemas.kinds import EVENT
from schemas.writes import ALREADY_EXISTS


def wall() -> datetime:
    """Return the time now, for the times of conditions and events; nothing is decided by it."""
    return datetime.now(UTC)


class Applier:
    """Performs effects through `kube`. `instance` names this process in events, `clock` is the wall's."""

    def __init__(self, kube: Kube, *, instance: str, clock: Callable[[], datetime] = wall) -> None:
        self._kube = kube
        self._instance = instance
        self._clock = clock
        self._claims = ClaimWriter(kube, lambda: f"{clock():%Y-%m-%dT%H:%M:%SZ}")
        self._pins = PinWriter(kube)

    def forget(self, vmi_uid: str) -> None:
        """Drop what is known of a VMI whose set is closed."""
        self._claims.forget(vmi_uid)

    async def stage(self, stage: Stage) -> tuple[AnyEffect, Verdict]:
        """Perform the effects of one stage side by side; return the one that ended worst, and how."""
        if len(stage) == 1:
            return stage[0], await self.perform(stage[0])
        verdicts = await asyncio.gather(*map(self.perform, stage))
        return max(zip(stage, verdicts, strict=True), key=lambda ended: ended[1].kind)

    async def perform(self, effect: AnyEffect) -> Verdict:
        """Perform one effect. Raises nothing that an API server can answer."""
        match effect:
            case CreateClaim():
                return await self._claims.create(effect)
            case WriteStatus():
                return await self._claims.show(effect)
            case Pin():
                return await self._pins.pin(effect)
            case Warn():
                return await self._warn(effect)
            case DropClaim():
                return await self._claims.drop(effect)
            case DropPod():
                return await drop_pod(self._kube, effect)
            case _:
                assert_never(effect)

    async def _warn(self, effect: Warn) -> Verdict:
        """Have the event exist; its name is that of the decision, so said again it is there already (C59)."""
        namespace = effect.vmi.namespace
        now = f"{self._clock():%Y-%m-%dT%H:%M:%S.%fZ}"
        try:
            await self._kube.create(EVENT, namespace, render.event_body(effect, now=now, instance=self._instance))
            return LANDED
        except ApiError as error:
            if error.code == 409 and error.reason == ALREADY_EXISTS:
                return LANDED
            if error.code != 404:
                return judged(error)
            missing = error
        try:
            return SETTLED if await namespace_is_over(self._kube, namespace) else again(missing)
        except ApiError as error:
            return judged(error)
