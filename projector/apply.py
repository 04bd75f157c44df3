"""Performs effects: one arm for each, every one safe to repeat from any point, none with opinions."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from binder.kube import ApiError, Kube
from projector import effects as x
from projector import render
from projector.claims import ClaimWriter
from projector.clock import wall
from projector.finalizers import Guarded, guard, unguard
from projector.licences import LicenceWriter
from projector.pins import PinWriter
from projector.pods import drop_pod
from projector.reads import namespace_is_over
from projector.verdicts import LANDED, SETTLED, Verdict, again, judged
from projector.vmis import drop_vmi
from schemas.kinds import EVENT, GPU_CLAIM, GPU_CLASS
from schemas.names import CLAIM_FINALIZER, CLASS_FINALIZER
from schemas.writes import ALREADY_EXISTS


class Applier:
    """Performs effects through `kube`. `instance` names this process in events, `clock` is the wall's.

    `home`: the namespace of settings and of the key for digests.
    """

    def __init__(self, kube: Kube, *, instance: str, home: str = "", clock: Callable[[], datetime] = wall) -> None:
        self._kube = kube
        self._instance = instance
        self._clock = clock
        self._claims = ClaimWriter(kube, self._now)
        self._licences = LicenceWriter(kube, home, self._now)
        self._pins = PinWriter(kube)

    def _now(self) -> str:
        return f"{self._clock():%Y-%m-%dT%H:%M:%SZ}"

    def forget(self, vmi_uid: str) -> None:
        """Drop what is known of a VMI whose set is closed."""
        self._claims.forget(vmi_uid)

    async def stage(self, stage: x.Stage) -> tuple[x.AnyEffect, Verdict]:
        """Perform the effects of one stage side by side; return the one that ended worst, and how."""
        if len(stage) == 1:
            return stage[0], await self.perform(stage[0])
        verdicts = await asyncio.gather(*map(self.perform, stage))
        return max(zip(stage, verdicts, strict=True), key=lambda ended: ended[1].kind)

    async def perform(self, effect: x.AnyEffect) -> Verdict:
        """Perform one effect. Raises nothing that an API server can answer."""
        match effect:
            case x.CreateClaim():
                return await self._claims.create(effect)
            case x.WriteStatus():
                return await self._claims.show(effect)
            case x.Pin():
                return await self._pins.pin(effect)
            case x.Warn():
                return await self._warn(effect)
            case x.DropClaim():
                return await self._claims.drop(effect)
            case x.DropPod():
                return await drop_pod(self._kube, effect)
            case x.DropVmi():
                return await drop_vmi(self._kube, effect)
            case x.CopyLicence():
                return await self._licences.copy(effect)
            case x.DropLicence():
                return await self._licences.drop(effect)
            case x.ShowLicence():
                return await self._licences.show(effect)
            case x.GuardClaim() | x.GuardClass():
                return await guard(self._kube, _guarded(effect))
            case x.UnguardClaim() | x.UnguardClass():
                return await unguard(self._kube, _guarded(effect))
            case _:
                assert_never(effect)

    async def _warn(self, effect: x.Warn) -> Verdict:
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


def _guarded(effect: x.GuardClaim | x.UnguardClaim | x.GuardClass | x.UnguardClass) -> Guarded:
    if isinstance(effect, x.GuardClaim | x.UnguardClaim):
        return Guarded(GPU_CLAIM, effect.vmi.namespace, effect.name, effect.uid, CLAIM_FINALIZER)
    return Guarded(GPU_CLASS, "", effect.name, effect.uid, CLASS_FINALIZER)
