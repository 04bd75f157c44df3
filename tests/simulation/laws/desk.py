"""What the API server is told of writes and orders is what the log says, and nothing is written past us unseen (T20).

Writes fail open: one that nobody answered in time stands, and is counted here as such. Orders fail closed.
"""

from http import HTTPStatus

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from deploy.world.history import Change
from deploy.world.manifests import Obj, decode, deleting, dig, meta
from deploy.world.store import Listener
from deploy.world.virt_names import CONTROLLER_ACCOUNT, account
from schemas import decisions as d
from schemas.admission import ORDER_PATH, SCALE, WRITE_PATH
from schemas.kinds import GPU_CLAIM, VMI
from schemas.names import TEMPLATE_LABEL
from schemas.objects import Stamp
from schemas.reasons import Refusal
from tests.simulation.glances import Glance, glance, in_the_way
from tests.simulation.labels import KUBEVIRT_NAMESPACE
from tests.simulation.laws.law import Law
from tests.simulation.laws.paper import KINDS, Paper, told_of
from tests.simulation.laws.recount import Recount, Units, by_key, is_below
from tests.simulation.picture import Picture
from tests.simulation.world import World

PASSED, UNCHECKED, REFUSED, UNTOUCHED = "passed", "unchecked", "refused", "untouched"
EQUAL_S = 61.0
"""A refusal stands for equal requests for a minute, and is told within another second."""

USED_S = 2.0
"""One that leans on what is used now stands for a second."""

LATE_S = 13.0
"""So much later a refusal may be told where something is in the way."""

OF_NOW = (Refusal.OVER_BUDGET, Refusal.NO_UNITS, Refusal.NOT_READY)


class Leant(msgspec.Struct, frozen=True):
    """What an answer leant on: units declared, and allowed, by level and key."""

    declared: dict[str, Units]
    allowed: dict[tuple[str, str, str], int]


class Desk(Law, Listener):
    """Each write that stands was asked about, and was answered so or by nobody; each order was answered so (T20, O1).

    What a write makes too much is what nobody checked, or what its answer could not have seen yet.
    """

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._paper, self._recount = Paper(picture, world.cluster), Recount(picture)
        self._outcomes: dict[tuple[str, str], tuple[str, str]] = {}
        self._leant: dict[str, Leant] = {}
        self._refusals: dict[str, float] = {}
        self._dry: dict[str, bool] = {}
        self._held: dict[str, bool] = {}
        self._begun: dict[int, Glance] = {}
        world.on_ask.append(self._asked)
        world.on_review.append(self._reviewed)
        world.cluster.api.store.listen(self)

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if isinstance(decision, d.WritePassed | d.Refused) and decision.request in self._dry:
            self.found.append(f"{stamp}: the dry run {decision.request} stands in the log (C25)")
        if isinstance(decision, d.Refused):
            self._refusals[decision.message] = self.world.now
        if isinstance(decision, d.StartHeld):
            self._held[decision.request] = True
        if isinstance(decision, d.WritePassed):
            self._leant[decision.request] = Leant(self._paper.seen(), self._allowed())

    def _allowed(self) -> dict[tuple[str, str, str], int]:
        return {(home, name, key): units for home, name, hard in self._recount.budgets() for key, units in hard.items()}

    def _asked(self, asked: bytes) -> None:
        self._begun[id(asked)] = glance(self.world)

    def _reviewed(self, asked: bytes, answer: bytes | None, path: str) -> None:
        since = self._begun.pop(id(asked))
        said: Obj = decode(answer)["response"] if answer is not None else {}
        refused = bool(said) and not said["allowed"] and said["status"]["code"] != HTTPStatus.FORBIDDEN
        if path not in {WRITE_PATH, ORDER_PATH} and not refused:
            return
        request: Obj = decode(asked)["request"]
        if request["dryRun"]:
            self._dry[request["uid"]] = True
            return
        self.picture.catch_up()
        if refused:
            self._unanswered(request["uid"], path, said["status"], since)
        if path not in {WRITE_PATH, ORDER_PATH}:
            return
        late = bool(in_the_way(self.world, since, heard=True))
        outcome = self._outcome(request, said, path, late=late)
        name = request["name"] or dig(request, "object", "metadata", "name")
        place = (request["resource"]["resource"], f"{request['namespace']}/{name}")
        self._outcomes[place] = (outcome, request["uid"])
        # In a world of troubles the call itself may have broken off, of which nobody has a word.
        excused = late or (not said and not self.world.calm)
        if outcome == UNCHECKED and not excused and not in_the_way(self.world, since, heard=bool(said)):
            self.found.append(f"{place} passes unchecked, and nothing is in the way: {said}")

    def _unanswered(self, uid: str, path: str, status: Obj, since: Glance) -> None:
        """A review that is turned away was held by the binder, or something was in the way of its answer."""
        if status["code"] != HTTPStatus.SERVICE_UNAVAILABLE:
            self.found.append(f"the review {uid} at {path} is answered {status}")
        elif uid not in self._held and not in_the_way(self.world, since, heard=True):
            self.found.append(f"the review {uid} at {path} is turned away, and nothing is in the way: {status}")

    def _outcome(self, request: Obj, said: Obj, path: str, *, late: bool) -> str:
        """Return what became of a review, and complain where that is not what the log says."""
        uid, about = request["uid"], f"{request['operation']} of {request['namespace']}/{request['name']}"
        if not said or (said.get("warnings") and said["allowed"]):
            return UNCHECKED if path == WRITE_PATH else REFUSED
        if said["allowed"]:
            if uid in self._leant:
                return PASSED
            if self._may_be_untouched(request, path):
                return UNTOUCHED
            self.found.append(f"{about} is allowed, and the log holds no answer to {uid}")
        elif said["status"]["code"] == HTTPStatus.FORBIDDEN and not self._is_told(said["status"], late=late):
            self.found.append(f"{about} is refused as the log never said: {said['status']['message']}")
        return REFUSED

    def _is_told(self, status: Obj, *, late: bool) -> bool:
        """Say whether the log has said this: of this request, or of an equal one a moment ago."""
        at = self._refusals.get(status["message"])
        most = (USED_S if status["reason"] in OF_NOW else EQUAL_S) + (LATE_S if late else 0)
        return status["reason"] == Refusal.RESERVED_MARK or (at is not None and self.world.now - at <= most)

    def _may_be_untouched(self, request: Obj, path: str) -> bool:
        """Say whether nothing had to be asked: a going object, no GPUs, or what KubeVirt makes for an owner."""
        obj = request["object"]
        if path == ORDER_PATH:
            return TEMPLATE_LABEL in (meta(obj).get("labels") or {})
        if request["subResource"] == SCALE:
            kind = KINDS[request["resource"]["resource"]]
            owner = self.world.cluster.find(kind, f"{request['namespace']}/{request['name']}")
            return owner is None or deleting(owner) or told_of(kind.plural, owner) is None
        if told_of(request["resource"]["resource"], obj) is None or deleting(obj):
            return True
        own = request["userInfo"]["username"] == account(KUBEVIRT_NAMESPACE, CONTROLLER_ACCOUNT)
        return request["resource"]["resource"] == VMI.plural and own and bool(meta(obj).get("ownerReferences"))

    @override
    def changed(self, change: Change) -> None:
        plural = change.resource.plural
        if plural == GPU_CLAIM.plural:
            if change.type == "ADDED" and TEMPLATE_LABEL not in (meta(change.object).get("labels") or {}):
                self._landed(plural, change)
        elif plural in KINDS and change.type != "DELETED":
            before = told_of(plural, change.before) if change.before is not None else None
            after = told_of(plural, change.object)
            known = before.units if before is not None else {}
            if after is not None and any(count > known.get(key, 0) for key, count in after.units.items()):
                self._landed(plural, change)

    def _landed(self, plural: str, change: Change) -> None:
        outcome, uid = self._outcomes.pop((plural, change.key), ("", ""))
        if not outcome or outcome == REFUSED or (outcome == UNCHECKED and plural == GPU_CLAIM.plural):
            self.found.append(f"{plural} {change.key} stands and was {outcome or 'never asked about'}")
        if outcome == PASSED:
            self._explained(plural, change, self._leant[uid])

    def _explained(self, plural: str, change: Change, leant: Leant) -> None:
        """What stands beyond a budget now was not beyond what its answer could see."""
        after, home = self._paper.real(), meta(change.object)["namespace"]
        more = self._rise(plural, change, after[home])
        for (level, name, key), hard in leant.allowed.items():
            rise = more.get(key, 0)
            if rise <= 0 or not is_below(home, level) or after[level].get(key, 0) <= hard:
                continue
            if leant.declared[level].get(key, 0) + rise > hard:
                known = leant.declared[level].get(key, 0)
                self.found.append(
                    f"{plural} {change.key} adds {rise} of {key} to {known}, {level}/{name} allows {hard}"
                )

    def _rise(self, plural: str, change: Change, after: Units) -> Units:
        """Return how much more is declared by what was written: beside what stood there before."""
        if plural == GPU_CLAIM.plural:
            spec = change.object["spec"]
            return by_key([(spec["className"], spec["count"])])
        now, old = told_of(plural, change.object), told_of(plural, change.before) if change.before else None
        assert now is not None
        before = self._paper.real(replace(now, units=old.units if old is not None else {}))[now.namespace]
        return {key: count - before.get(key, 0) for key, count in after.items()}
