"""How much of each resource is used and free on each node, and the nodes in the order of what is free.

Derived from nodes, pods and bookings; amounts in the units of `schemas.objects`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from binder.state import GpuSet
from schemas.decisions import HeldClaim, TemplateClaim
from schemas.objects import AnyView, NodeView

Amounts = dict[str, int]
Share = tuple[str, Amounts]
"""What one pod or one booking takes: the node, and how much of each resource."""


class Usage:
    """`used`: amounts per node and resource. `ranked`: (free, node) per counted resource, least first.

    A resource is counted while a class or a set counts by it; `references` says how many do. `offered`: how many nodes
    offer each amount of a counted resource.
    """

    def __init__(self, nodes: dict[str, AnyView]) -> None:
        self._nodes = nodes
        self.used: dict[str, Amounts] = {}
        self.ranked: dict[str, list[tuple[int, str]]] = {}
        self.references: dict[str, int] = {}
        self.shares: dict[str, dict[str, Share]] = {"pods": {}, "sets": {}, "holdings": {}}
        self.offered: dict[str, dict[int, int]] = {}
        self._offers: dict[str, Amounts] = {}
        self._free: dict[str, Amounts] = {}

    def node(self, name: str) -> NodeView | None:
        """Return the node of that name."""
        return self._nodes.get(name)  # type: ignore[return-value]  # the table of nodes

    def free(self, node: NodeView, resource: str) -> int:
        """Return what is left of a resource on a node; below zero where more is used than offered."""
        used = self.used.get(node.name)
        return node.allocatable.get(resource, 0) - (used.get(resource, 0) if used else 0)

    def overused(self, node: NodeView) -> Amounts:
        """Return by resource how much more is used of a node than it offers."""
        used, offered = self.used.get(node.name, {}), node.allocatable
        return {name: amount - offered.get(name, 0) for name, amount in used.items() if amount > offered.get(name, 0)}

    def roomy(self, resource: str, count: int) -> Iterator[str]:
        """Return the nodes with at least `count` units free, fullest first, then by name."""
        ranked = self.ranked.get(resource, [])
        return (ranked[place][1] for place in range(bisect_left(ranked, (count, "")), len(ranked)))

    def roomy_count(self, resource: str, count: int) -> int:
        """Return how many nodes have at least `count` units free."""
        ranked = self.ranked.get(resource, [])
        return len(ranked) - bisect_left(ranked, (count, ""))

    def refer(self, resource: str, sign: int) -> None:
        """Begin (+1) or end (-1) one reason to count a resource."""
        count = self.references.get(resource, 0) + sign
        if count:
            self.references[resource] = count
        else:
            del self.references[resource]
        if count == 0:
            del self.ranked[resource]
            del self.offered[resource], self._offers[resource]
            self._free.pop(resource, None)
        elif resource not in self.ranked:
            self.ranked[resource] = []
            self.offered[resource], self._offers[resource] = {}, {}
            for name in self._nodes:
                self._offer(name, resource)
                self._rank_one(name, resource)

    def offers(self, node: NodeView | None) -> bool:
        """Say whether a node offers anything that is counted."""
        return node is not None and any(node.allocatable.get(resource, 0) > 0 for resource in self.ranked)

    def rank(self, name: str) -> None:
        """Keep a node's place in every order: it came, changed or went."""
        for resource in self.ranked:
            self._offer(name, resource)
            self._rank_one(name, resource)

    def is_too_much(self, asked: Amounts) -> bool:
        """Say whether no node offers as many units of one of these counted resources, used or free."""
        return any(count > max(self.offered.get(resource, ()), default=0) for resource, count in asked.items())

    def take(self, table: str, key: str, share: Share | None) -> tuple[Share | None, bool]:
        """Let a pod or set take this share alone; return the share before, and whether it changed."""
        shares = self.shares[table]
        before = shares.get(key)
        if before == share:
            return before, False
        if before is not None:
            del shares[key]
            self._use(before, -1)
        if share is not None:
            shares[key] = share
            self._use(share, 1)
        return before, True

    def _use(self, share: Share, sign: int) -> None:
        node, amounts = share
        used = self.used.setdefault(node, {})
        for resource, amount in amounts.items():
            used[resource] = used.get(resource, 0) + sign * amount
            if not used[resource]:
                del used[resource]
            if resource in self.ranked:
                self._rank_one(node, resource)
        if not used:
            del self.used[node]

    def _offer(self, name: str, resource: str) -> None:
        """Keep how much one node offers of one resource."""
        node, offers, nodes = self.node(name), self._offers[resource], self.offered[resource]
        before, now = offers.pop(name, 0), node.allocatable.get(resource, 0) if node is not None else 0
        if before:
            nodes[before] -= 1
            if not nodes[before]:
                del nodes[before]
        if now:
            offers[name] = now
            nodes[now] = nodes.get(now, 0) + 1

    def _rank_one(self, name: str, resource: str) -> None:
        """Keep one node's place in the order of one resource."""
        node = self.node(name)
        offers = node is not None and node.allocatable.get(resource, 0) > 0
        now = self.free(node, resource) if node is not None and offers else None
        known = self._free.setdefault(resource, {})
        before = known.get(name)
        if before == now:
            return
        ranked = self.ranked[resource]
        if before is not None:
            del ranked[bisect_left(ranked, (before, name))]
            del known[name]
        if now is not None:
            insort(ranked, (now, name))
            known[name] = now


def most_free(usage: Usage, nodes: Iterable[NodeView], resource: str) -> int:
    """Return the free units on the one of these nodes that has most, 0 where none has any."""
    return max((usage.free(node, resource) for node in nodes), default=0)


def claims_of(gpu_set: GpuSet) -> tuple[TemplateClaim | HeldClaim, ...]:
    """Return all claims of a set, the held ones last."""
    return (*gpu_set.claims, *gpu_set.held)


def units(gpu_set: GpuSet) -> Amounts:
    """Return the units a set asks of each resource: two classes may share one (C54)."""
    total: Amounts = {}
    for claim in claims_of(gpu_set):
        total[claim.resource] = total.get(claim.resource, 0) + claim.count
    return total


def booking_of(gpu_set: GpuSet | None) -> tuple[str, str, str]:
    """Return node and pods of a set's booking, which is what its pods are counted by; empty where there is none."""
    return (gpu_set.node, gpu_set.pod_uid, gpu_set.former) if gpu_set is not None else ("", "", "")
