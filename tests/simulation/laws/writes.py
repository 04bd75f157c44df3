"""Answers to writes and orders lean on what is declared, held and free: recounted at every answer (B2, O1)."""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from deploy.world import fitting
from schemas import decisions as d
from schemas import events as e
from schemas.kinds import VMI
from schemas.objects import ClassView, NodeView, Stamp
from schemas.reasons import Refusal
from tests.simulation.laws.budgets import order_of
from tests.simulation.laws.law import Law
from tests.simulation.laws.paper import Paper, thing_of
from tests.simulation.laws.recount import TOTAL, Bound, Recount, Units, by_key
from tests.simulation.picture import Picture
from tests.simulation.world import World

_OVER = re.compile(r"budget of (\S+): (\S+) is limited to (\d+), (\d+) are declared, (\d+) more are asked")
_SHORT = re.compile(r"are asked(?: on one node)?, (\d+) are free now(?:, (\d+) at most on one node)?")


class Answered(Law):
    """A write or order passes just where every budget of its line has room, and a refusal's numbers are true."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._recount, self._paper = Recount(picture), Paper(picture, world.cluster)
        self._answered: dict[str, Stamp] = {}

    @override
    def anew(self) -> None:
        self._answered.clear()

    @override
    def decided(self, stamp: Stamp, decision: d.Decision) -> None:
        if not isinstance(decision, d.WritePassed | d.Refused):
            return
        asked = e.decode_event(self.picture.body)
        if not isinstance(asked, e.WriteRequest | e.OrderRequest):
            return
        if asked.request != decision.request:
            self.found.append(f"{stamp}: {decision.request} is answered, {asked.request} asked")
        before = self._answered.setdefault(decision.request, stamp)
        if before != stamp:
            self.found.append(f"{stamp}: {decision.request} was answered at {before} already")
        told = decision.message if isinstance(decision, d.Refused) else ""
        if isinstance(asked, e.WriteRequest):
            self._write(stamp, asked, decision, told)
        else:
            self._order(stamp, asked, decision, told)

    def _write(self, stamp: Stamp, asked: e.WriteRequest, decision: d.WritePassed | d.Refused, told: str) -> None:
        view = replace(asked.view, owner_uid="") if asked.kind == VMI.plural else asked.view
        before, after = self._paper.seen(), self._paper.seen(thing_of(asked.kind, view))
        home = asked.namespace
        more = {key: count - before[home].get(key, 0) for key, count in after[home].items()}
        self._judged(stamp, f"{asked.kind} {home}/{asked.name}", decision, told, self._over(home, more, before), more)

    def _over(self, home: str, more: Units, used: dict[str, Units]) -> Bound | None:
        known = [replace(one, used=used[one.namespace].get(one.key, 0)) for one in self._recount.bounds(home)]
        over = [one for one in known if more.get(one.key, 0) > 0 and one.used + more[one.key] > one.hard]
        return min(over, key=lambda one: order_of(known, one), default=None)

    def _judged(
        self, stamp: Stamp, who: str, decision: d.WritePassed | d.Refused, told: str, over: Bound | None, more: Units
    ) -> None:
        if over is None and not told:
            return
        if over is None:
            self.found.append(f"{stamp}: {who} is refused ({told}), and every budget has room for {more}")
        elif not told:
            self.found.append(f"{stamp}: {who} passes with {more} more, beyond {over}")
        else:
            said = _OVER.search(told)
            due = (over.namespace, over.key, over.hard, over.used, more[over.key])
            if said is None or (said[1], said[2], int(said[3]), int(said[4]), int(said[5])) != due:
                self.found.append(f"{stamp}: {who} is told {told}, and {due} is so")

    def _order(self, stamp: Stamp, asked: e.OrderRequest, decision: d.WritePassed | d.Refused, told: str) -> None:
        who = f"order {asked.namespace}/{asked.name}"
        view = next((one for one in asked.classes if one.name == asked.class_name), None)
        reason = decision.reason if isinstance(decision, d.Refused) else None
        against = self._against(asked, view)
        if against is not None or view is None:
            if reason != against:
                self.found.append(f"{stamp}: {who} is answered {reason or 'yes'} ({told}), its class says {against}")
            return
        more = by_key([(asked.class_name, asked.count)])
        over = self._over(asked.namespace, more, self._paper.seen())
        if over is not None or reason == Refusal.OVER_BUDGET:
            self._judged(stamp, who, decision, told, over, more)
            return
        if reason == Refusal.NOT_READY:
            return
        free = dict(self._free(view))
        taken = [name for name, units in free.items() if units >= asked.count and name != self.picture.kept]
        if reason is None and not taken:
            self.found.append(f"{stamp}: {who} passes, and no node has {asked.count} of {view.resource}: {free}")
        if reason is not None:
            self._short(stamp, who, told, taken, [*free.values()])

    def _short(self, stamp: Stamp, who: str, told: str, taken: list[str], free: list[int]) -> None:
        said = _SHORT.search(told)
        most = max(free, default=0)
        if taken:
            self.found.append(f"{stamp}: {who} is refused ({told}), and fits on {', '.join(taken)}")
        elif said is not None and (int(said[1]) != sum(free) or (said[2] and int(said[2]) != most)):
            self.found.append(f"{stamp}: {who} is told {told}, free are {free}")

    def _against(self, asked: e.OrderRequest, view: ClassView | None) -> Refusal | None:
        """Return what the class itself says against an order, as it was read for it."""
        if view is None:
            return Refusal.CLASS_NOT_FOUND
        if view.deleting:
            return Refusal.CLASS_DELETED
        if view.conflict:
            return Refusal.CLASS_CONFLICT
        if asked.count > (view.max_count or 0):
            return Refusal.OVER_MAXIMUM
        barred = asked.home is not None and not asked.home.vgpu
        return Refusal.NO_ENTITLEMENT if view.mode == "VGPU" and barred else None

    def _free(self, view: ClassView) -> Iterator[tuple[str, int]]:
        """Yield what is free of a class on each node that serves it."""
        tolerations = msgspec.to_builtins(view.tolerations)
        for node in self.picture.objects.get("nodes", {}).values():
            if not isinstance(node, NodeView) or not node.ready or node.unschedulable or node.deleting:
                continue
            if fitting.tolerates({"spec": {"tolerations": tolerations}}, msgspec.to_builtins(node.taints)):
                offered = node.allocatable.get(view.resource, 0)
                yield node.key, max(offered - self.picture.used(node.key, view.resource), 0)


class OnPaper(Law):
    """At rest what objects declare is what the log shows and each binder has summed: nothing once all is gone (B2)."""

    def __init__(self, world: World, picture: Picture) -> None:
        super().__init__(world, picture)
        self._recount, self._paper = Recount(picture), Paper(picture, world.cluster)

    @override
    def pending(self) -> Iterator[str]:
        real, seen = self._paper.real(), self._paper.seen()
        if real != seen:
            yield f"objects declare {real}, the log shows {seen}"
        for process in self.world.processes.values():
            follower = process.binder.follower if process.binder is not None else None
            if follower is not None and follower.book.state.events_seq == self.picture.sequence:
                sums = {level: dict(follower.book.declared.used.get(level, {})) for level in seen}
                if sums != seen:
                    yield f"{process.name} has summed {sums}, declared are {seen}"
                yield from self._held(process.name, follower.book.budgets.used, seen)

    def _held(self, who: str, used: Mapping[str, Units], declared: dict[str, Units]) -> Iterator[str]:
        """Say where a binder's sum of what is held is none, or more than is declared."""
        for level, units in declared.items():
            for key in units | used.get(level, {}):
                held, due = used.get(level, {}).get(key, 0), self._recount.held(level, key)
                if held != due or (key.startswith(TOTAL) and due > units.get(key, 0)):
                    yield f"{who} has summed {held} of {key} for {level}, held are {due}, declared {units.get(key, 0)}"
