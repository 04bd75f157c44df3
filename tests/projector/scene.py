"""A scene for the projector on any API server, model or real: VMIs, gated launchers, sets, and what became of them."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from binder.journal import Journal
from binder.kube import ApiError, Kube, PatchKind
from binder.memory_journal import MemoryJournal
from binder.state import GpuSet, Holding, State, empty_state
from projector.service import Projector
from schemas.decisions import ClaimDropped, Decision, HeldClaim, HeldFreed, HeldPlaced, TemplateClaim, VmiId
from schemas.events import Outcome, Outcomes, decode_event
from schemas.kinds import EVENT, GPU_CLAIM, POD, VMI, Resource
from schemas.names import GATE
from schemas.objects import NodeSelectorTerm, Requirement, Stamp
from schemas.reasons import Placing, Wait
from schemas.streams import EVENTS

Obj = dict[str, Any]

NODE = "ip-10-0-1-5.ec2.internal"
RESOURCE = "nvidia.com/AD102GL_L40S"
FOREIGN_GATE = "kueue.x-k8s.io/admission"
NOW = datetime(2026, 5, 3, 10, 0, 0, tzinfo=UTC)
SECONDS = 120.0
ZONE = NodeSelectorTerm((Requirement("zone", "In", ("a", "b")),))
MODEL = NodeSelectorTerm((Requirement("model", "DoesNotExist"),))
PINNED = {"key": "metadata.name", "operator": "In", "values": [NODE]}


async def time_passes(seconds: float) -> None:
    """Let the time of a loop that jumps go by; the work that is due in it is done."""
    await asyncio.sleep(seconds)


def stamp(sequence: int, entry: int = 0) -> Stamp:
    """A decision on that input."""
    return Stamp(1, sequence, entry)


def terms_json(terms: Sequence[NodeSelectorTerm]) -> Obj:
    """Required node affinity with these terms, as a pod spells it."""
    selector = {"nodeSelectorTerms": msgspec.json.decode(msgspec.json.encode(list(terms)))}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def success(outcomes: list[Outcome]) -> bool:
    """Whether one set, and nothing else, was reported as written."""
    return [(outcome.action, outcome.code) for outcome in outcomes] == [("set", 0)]


def gates(pod: Obj) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


class Scene:
    """One namespace of an API server, and a projector beside it. `clock` is what it takes for the time."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.journal = MemoryJournal()
        self.state: State = empty_state()
        self.clock = NOW
        self._numbers = itertools.count(1)

    async def vmi(self, name: str = "vm-a") -> VmiId:
        """Create a VMI; return who it is."""
        body = {
            "metadata": {"name": name},
            "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}},
        }
        made = await self.create(VMI, body)
        return VmiId(self.namespace, name, made["metadata"]["uid"])

    async def delete_vmi(self, vmi: VmiId) -> None:
        """Delete a VMI and wait until it is gone."""
        await self.kube.delete(VMI, self.namespace, vmi.name, uid=vmi.uid)
        deadline = asyncio.get_running_loop().time() + SECONDS
        while await self.find(VMI, vmi.name) is not None:
            assert asyncio.get_running_loop().time() < deadline, f"VMI {vmi.name} is still there"
            await asyncio.sleep(0.02)

    async def launcher(
        self,
        affinity: Obj | None = None,
        gates: Sequence[str] = (GATE,),
        name: str = "virt-launcher-a",
    ) -> Obj:
        """Create a launcher behind these gates."""
        spec: Obj = {
            "containers": [{"name": "compute", "image": "none"}],
            "schedulingGates": [{"name": gate} for gate in gates],
        }
        if affinity is not None:
            spec["affinity"] = affinity
        return await self.create(POD, {"metadata": {"name": name}, "spec": spec})

    def placed(
        self,
        vmi: VmiId,
        pod: Obj,
        *,
        terms: Sequence[NodeSelectorTerm] = (),
        at: int = 10,
        units: Sequence[int] = (2,),
        node: str = NODE,
    ) -> GpuSet:
        """A set that was booked on a node."""
        return GpuSet(
            vmi,
            stamp(at),
            0,
            claims=self.claims(vmi, units),
            node=node,
            pod=pod["metadata"]["name"],
            pod_uid=pod["metadata"]["uid"],
            terms=tuple(terms),
        )

    def waiting(self, vmi: VmiId, reason: Wait = Wait.NO_ROOM, *, at: int = 10, units: Sequence[int] = (2,)) -> GpuSet:
        """A set that was told why it waits."""
        claims = self.claims(vmi, units)
        return GpuSet(vmi, stamp(at), 0, claims=claims, reason=reason, message="no node has room", told=stamp(at))

    def claims(self, vmi: VmiId, units: Sequence[int]) -> tuple[TemplateClaim, ...]:
        """The template claims of a set."""
        return tuple(
            TemplateClaim(f"{vmi.name}-{vmi.uid[:8]}-{index}", "l40s", count, RESOURCE)
            for index, count in enumerate(units)
        )

    async def order(self, name: str = "mine", count: int = 1, **metadata: object) -> HeldClaim:
        """Create a held claim, as a tenant does; return which it is."""
        body = {"metadata": {"name": name} | metadata, "spec": {"className": "l40s", "count": count}}
        made = await self.create(GPU_CLAIM, body)
        return HeldClaim(name, made["metadata"]["uid"], "l40s", count, RESOURCE)

    def hold(self, claim: HeldClaim, *, at: int = 10, **fields: Any) -> Holding:  # noqa: ANN401 - of a holding
        """What was decided of a held claim."""
        return Holding(self.namespace, claim, stamp(at), **fields)

    async def project(
        self, *items: GpuSet | Holding, kube: Kube | None = None, drops: Sequence[ClaimDropped] = ()
    ) -> list[Outcome]:
        """Let a fresh projector write sets and held claims as the newest decisions; return what it reported."""
        before = (await self.journal.info(EVENTS)).last
        async with self.projector(kube) as projector:
            self.decide(projector, *items, drops=drops)
            await asyncio.wait_for(projector.idle(), SECONDS)
        return await self.outcomes(after=before)

    def decide(self, projector: Projector, *items: GpuSet | Holding, drops: Sequence[ClaimDropped] = ()) -> None:
        """Hand the projector one step of the log."""
        sets = [one for one in items if isinstance(one, GpuSet)]
        held = [one for one in items if isinstance(one, Holding)]
        self.state.sets.update({one.vmi.uid: one for one in sets})
        self.state.holdings.update({f"{one.namespace}/{one.claim.name}": one for one in held})
        decided: list[tuple[Stamp, Decision]] = [(stamp(99), drop) for drop in drops]
        decided += [(one.stamp, _said(one)) for one in held]
        projector.take(self.state, [one.vmi.uid for one in sets], decided)

    @asynccontextmanager
    async def projector(self, kube: Kube | None = None, journal: Journal | None = None) -> AsyncIterator[Projector]:
        """A projector at work."""
        made = Projector(kube or self.kube, journal or self.journal, instance="test", clock=lambda: self.clock)
        working = asyncio.create_task(made.work())
        try:
            yield made
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def outcomes(self, after: int = 0) -> list[Outcome]:
        """What was reported on EVENTS after a sequence; other events are passed over."""
        last = (await self.journal.info(EVENTS)).last
        found: list[Outcome] = []
        for sequence in range(after + 1, last + 1):
            message = await self.journal.get(EVENTS, sequence)
            event = decode_event(message.body) if message is not None else None
            found += event.outcomes if isinstance(event, Outcomes) else ()
        return found

    async def reported(self, cause: int) -> int:
        """Wait until the decision on that input is reported; return the outcome's code."""
        deadline = asyncio.get_running_loop().time() + SECONDS
        while True:
            found = [told for told in await self.outcomes() if told.stamp.sequence == cause]
            if found:
                return found[-1].code
            assert asyncio.get_running_loop().time() < deadline, f"nothing is reported of the decision on {cause}"
            await asyncio.sleep(0.01)

    async def create(self, resource: Resource, body: Mapping[str, Any]) -> Obj:
        """Create an object in the scene's namespace."""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | dict(body)
        return self._read(await self.kube.create(resource, self.namespace, msgspec.json.encode(whole)))

    async def find(self, resource: Resource, name: str) -> Obj | None:
        """Return an object, or None."""
        try:
            return self._read(await self.kube.get(resource, self.namespace, name))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def get(self, resource: Resource, name: str) -> Obj:
        """Return an object that is there."""
        found = await self.find(resource, name)
        assert found is not None, f"{resource.kind} {name} is not there"
        return found

    async def patch(self, resource: Resource, name: str, patch: Obj, subresource: str = "") -> Obj:
        """Merge a patch into an object, as anybody might."""
        body = msgspec.json.encode(patch)
        return self._read(
            await self.kube.patch(resource, self.namespace, name, body, kind=PatchKind.MERGE, subresource=subresource)
        )

    async def all(self, resource: Resource) -> list[Obj]:
        """Return all objects of a kind in the scene's namespace, by name."""
        page = await self.kube.list_page(resource, namespace=self.namespace)
        items = ({"kind": resource.kind} | self._read(item) for item in page.items)
        return sorted(items, key=lambda item: item["metadata"]["name"])

    async def events(self) -> list[Obj]:
        """Return the Warning events of ours."""
        return [event for event in await self.all(EVENT) if event.get("reportingController") == "gpubinder"]

    async def claim(self, vmi: VmiId, index: int = 0) -> Obj:
        """Return a template claim of the VMI."""
        return await self.get(GPU_CLAIM, self.claims(vmi, (0,) * (index + 1))[index].name)

    async def terms(self, name: str = "virt-launcher-a") -> list[Obj]:
        """Return the required node affinity terms of a launcher."""
        pod = await self.get(POD, name)
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        found: list[Obj] = required["nodeSelectorTerms"]
        return found

    @staticmethod
    def _read(body: bytes | msgspec.Raw) -> Obj:
        found: Obj = msgspec.json.decode(body)
        return found


def _said(holding: Holding) -> Decision:
    """A decision about a held claim: what counts is how the state stands after it."""
    claim = holding.claim
    if holding.freed:
        return HeldFreed(holding.namespace, claim.name, claim.uid)
    return HeldPlaced(holding.namespace, (claim,), holding.node, Placing.ORDERED)
