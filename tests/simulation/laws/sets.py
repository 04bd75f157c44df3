"""Sets are whole: decided at once, on one node, as the VMI's entries ask; a reason is told once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from typing_extensions import override

from deploy.world.manifests import Obj, dig, key_of, meta
from schemas import decisions as d
from schemas.kinds import EVENT, GPU_CLAIM, VMI
from schemas.names import FIELD_MANAGER
from schemas.objects import Stamp, VmiView
from schemas.reasons import Wait
from tests.simulation.laws.law import Law
from tests.simulation.picture import Picture
from tests.simulation.world import World


class Whole(Law):
    """A set is placed as a whole: its claims are the VMI's entries, its pod requests just them (D3, D10)."""

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.SetOpened():
                self._opened(stamp, decision)
            case d.SetPlaced():
                self._placed(stamp, decision)
            case _:
                pass

    def _vmi(self, vmi: d.VmiId) -> VmiView | None:
        found = self.picture.objects.get("virtualmachineinstances", {}).get(f"{vmi.namespace}/{vmi.name}")
        return found if isinstance(found, VmiView) and found.uid == vmi.uid else None

    def _opened(self, stamp: Stamp, decision: d.SetOpened) -> None:
        vmi = self._vmi(decision.vmi)
        known = self.picture.claims.get(decision.vmi.uid)
        said = [(claim.class_name, claim.count) for claim in decision.claims]
        before = [(claim.name, claim.class_name, claim.count) for claim in known or ()]
        now = [(claim.name, claim.class_name, claim.count) for claim in decision.claims]
        counts_alike = known == decision.claims or decision.vmi.uid not in self.picture.bookings
        if known is not None and (before != now or not counts_alike):
            self.found.append(f"{stamp}: {decision.vmi.name} has other claims than before")
        entries = msgspec.json.decode(vmi.gpus) if vmi is not None else []
        named = [one["claimName"] for one in entries if "claimName" in one]
        held = [claim.name for claim in decision.held]
        asked = [(one["className"], one["count"]) for one in entries if "className" in one]
        if vmi is not None and (said != asked or not set(held) <= set(named)):
            self.found.append(f"{stamp}: {decision.vmi.name} asks for {vmi.gpus}, its claims are {said} and {held}")

    def _placed(self, stamp: Stamp, decision: d.SetPlaced) -> None:
        vmi = self._vmi(decision.vmi)
        pod = self.picture.pod(f"{decision.vmi.namespace}/{decision.pod}")
        asked: Counter[str] = Counter()
        for claim in self.picture.claims.get(decision.vmi.uid, ()):
            asked[claim.resource] += claim.count
        held = self.picture.held.of(decision.vmi.uid)
        for one in held:
            asked[one.resource] += one.count
        named = [one for one in msgspec.json.decode(vmi.gpus) if "claimName" in one] if vmi is not None else []
        if len(held) != len(named):
            self.found.append(f"{stamp}: {decision.vmi.name} is placed with {len(held)} of {len(named)} held claims")
        if vmi is None or vmi.deleting or decision.pod_uid not in vmi.active_pods:
            self.found.append(
                f"{stamp}: {decision.vmi.name} is placed, and is gone, going or does not list its pod (D11)"
            )
        if pod is None or {name: pod.requests.get(name, 0) for name in asked} != asked or not asked:
            self.found.append(f"{stamp}: {decision.vmi.name} is placed, its pod does not request its set {dict(asked)}")
        if pod is not None and pod.owner_uid != decision.vmi.uid:
            self.found.append(f"{stamp}: {decision.vmi.name} is placed for a pod of another VMI ({pod.owner_uid})")


Bound = tuple[str, str, str, int, int] | None
"""A budget's limit as it is told: whose, which, of what, how much it allows, and how much is asked."""


class Told(Law):
    """A reason is told once: never twice in a row, and by one Warning event each at most (D5, C59)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._told: Counter[str] = Counter()
        self._rewinds: Counter[str] = Counter()
        self._bounds: dict[str, tuple[Bound, str]] = {}

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        match decision:
            case d.NodeSkipped() | d.VmiGivenUp():
                self._told[f"{decision.vmi.namespace}/{decision.vmi.name}"] += 1
            case d.LicenceBlocked():
                self._told[f"{decision.namespace}/{decision.name}"] += 1
            case d.HeldLost() | d.HeldWaits():
                self._told.update(f"{decision.namespace}/{claim.name}" for claim in decision.claims)
            case d.HeldAdopted() if decision.lost is not None:
                self._told.update(f"{decision.namespace}/{claim.name}" for claim in decision.claims)
            case d.SetWaits():
                self._waits(stamp, decision)
            case _:
                pass
        if isinstance(decision, d.HeldWaits):
            self._claims_wait(stamp, decision)

    def _claims_wait(self, stamp: Stamp, decision: d.HeldWaits) -> None:
        """What a server back from a backup shows no more is said again, once (T12)."""
        known = [one.reason for _, one in self.picture.held.named(decision.namespace, decision.claims)]
        keys = [f"{decision.namespace}/{claim.name}" for claim in decision.claims]
        again = [self._is_told(f"{decision.namespace}/{claim.name}", decision.over) for claim in decision.claims]
        undone = any(self._rewinds[key] < self.picture.rewinds for key in keys)
        if known and all(again) and all(reason == decision.reason for reason in known) and not undone:
            self.found.append(f"{stamp}: claims of {decision.namespace} are told {decision.reason} again")
        self._rewinds.update({key: self.picture.rewinds - self._rewinds[key] for key in keys})

    def _waits(self, stamp: Stamp, decision: d.SetWaits) -> None:
        uid = decision.vmi.uid
        self._told[f"{decision.vmi.namespace}/{decision.vmi.name}"] += 1
        # Whose a claim is that is in use is told by name, and again where that changes.
        whose = decision.message if decision.reason is Wait.CLAIM_IN_USE else ""
        if self._is_told(uid, decision.over, whose) and self.picture.reasons.get(uid) == decision.reason:
            self.found.append(f"{stamp}: {decision.vmi.name} is told {decision.reason} again")
        if uid in self.picture.bookings:
            self.found.append(f"{stamp}: {decision.vmi.name} waits ({decision.reason}), and is booked")

    def _is_told(self, who: str, over: d.Over | None, whose: str = "") -> bool:
        """Say whether somebody was told of just this bound before: what is used of it makes it no other one (C59)."""
        bound = (over.namespace, over.budget, over.key, over.hard, over.asked) if over is not None else None
        before, self._bounds[who] = self._bounds.get(who, (None, "")), (bound, whose)
        return before == (bound, whose)

    @override
    def step(self) -> Iterator[str]:
        heard: Counter[str] = Counter()
        for one in self.world.cluster.objects(EVENT):
            if one["reportingController"] == FIELD_MANAGER:
                about = one["regarding"]
                heard[f"{about['namespace']}/{about['name']}"] += 1
        for key, count in heard.items():
            if count > self._told[key]:
                yield f"{count} Warning events about {key} for {self._told[key]} reasons told"


class Shown(Law):
    """At rest each claim shows what was decided of its set, and each decided claim is there (D5, N4, T22)."""

    @override
    def rest(self) -> Iterator[str]:
        shown = {key_of(claim): claim for claim in self.world.cluster.objects(GPU_CLAIM)}
        alive = {meta(vmi)["uid"] for vmi in self.world.cluster.objects(VMI)}
        decided: set[str] = set()
        for uid, claims in self.picture.claims.items():
            if uid not in alive:
                yield f"the log still holds a set of the VMI {uid}, which is gone"
                continue
            booking = self.picture.bookings.get(uid)
            for key in (self._key(uid, claim) for claim in claims):
                decided.add(key)
                if key not in shown:
                    yield f"claim {key} was decided and is not there"
                elif booking is not None:
                    yield from _compared(shown[key], "Bound", booking.node, "Placed")
                elif uid in self.picture.reasons:
                    yield from _compared(shown[key], "Pending", None, self.picture.reasons[uid])
        for key in sorted(set(shown) - decided - set(self.picture.held.claims)):
            yield f"claim {key} is there, and nobody decided it (T14)"

    def _key(self, uid: str, claim: d.TemplateClaim) -> str:
        vmi: Any = next(one for one in self.world.cluster.objects(VMI) if meta(one)["uid"] == uid)
        return f"{meta(vmi)['namespace']}/{claim.name}"


def _compared(claim: Obj, phase: str, node: str | None, reason: str) -> Iterator[str]:
    conditions = dig(claim, "status", "conditions") or [{}]
    said = (dig(claim, "status", "phase"), dig(claim, "status", "nodeName"), conditions[0].get("reason"))
    if said != (phase, node, reason):
        yield f"claim {key_of(claim)} shows {said}, decided is {(phase, node, reason)}"
