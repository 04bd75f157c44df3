"""What an operator should know before a cluster is taken over: where status and pods differ, and what no claim covers.

Pure: told from a picture of the cluster, before and after `binder.adopting` booked what it found there.
"""

from collections.abc import Iterator

from binder.adopting import let_go, vmis
from binder.book import Book
from binder.following import place_of
from binder.launchers import gated_launchers, names_gpus
from schemas import decisions as d
from schemas.claims import Phase
from schemas.names import POLICY_SCHEDULE
from schemas.objects import ClaimView, NodeView, PodView, VmiView


def conflicts(book: Book, decision: d.Decision) -> Iterator[str]:
    """Say where a status tells something else than what is about to be booked."""
    match decision:
        case d.SetAdopted():
            namespace = decision.vmi.namespace
            for name in [one.name for one in decision.claims] + [one.name for one in decision.held]:
                shown = book.state.claim(f"{namespace}/{name}")
                if shown is None:
                    yield f"claim {namespace}/{name} of VM {namespace}/{decision.vmi.name} is missing: it is made again"
                elif shown.phase == Phase.BOUND and shown.node and shown.node != decision.node:
                    yield (
                        f"claim {shown.key} says {shown.node}, the launcher {decision.pod} is on {decision.node}: "
                        f"{decision.node} it is"
                    )
        case d.HeldAdopted() if decision.lost is not None and decision.message:
            for held in decision.claims:
                yield f"claim {decision.namespace}/{held.name}: {decision.message}; bound anew where there is room"
        case _:
            return


def not_booked(book: Book) -> Iterator[str]:
    """Name the VMs that have or await units and get no booking, once all was booked that could be."""
    for vmi in vmis(book):
        if vmi.uid in book.state.sets or vmi.policy == POLICY_SCHEDULE:
            # kube-scheduler's are nobody's booking: they are told with the pods that count by themselves.
            continue
        pod = let_go(book, vmi)
        if pod is not None:
            yield (
                f"VM {vmi.key} is on {place_of(pod)}, and its entries, claims and requests don't make one set of ours: "
                "it counts by its launcher alone until it stops"
            )
        elif names_gpus(vmi) and gated_launchers(book.state, vmi, book.index.pods_by_vmi.of(vmi.uid)):
            yield from _gated(book, vmi)


def _gated(book: Book, vmi: VmiView) -> Iterator[str]:
    for key in sorted(book.index.owner_claims.of(vmi.uid)):
        shown = book.state.claim(key)
        if isinstance(shown, ClaimView) and shown.phase == Phase.BOUND:
            yield f"claim {key} says {shown.node}, the launcher of VM {vmi.key} waits behind our gate: gathered anew"


def counted(book: Book) -> Iterator[str]:
    """Name the pods that have counted units outside of any booking: raw ones, and VMs with GPU entries of their own."""
    for key in sorted(book.usage.shares["pods"]):
        node, requests = book.usage.shares["pods"][key]
        units = {name: amount for name, amount in sorted(requests.items()) if amount and name in book.class_resources}
        pod = book.state.pod(key)
        if units and isinstance(pod, PodView):
            owner = f" of VM {pod.namespace}/{pod.owner_name}" if pod.owner_name else ""
            yield f"pod {key}{owner} on {node}: " + ", ".join(f"{amount} x {name}" for name, amount in units.items())


def overbooked(book: Book) -> Iterator[str]:
    """Name the nodes of which more units are booked than they offer: nothing new comes there, claims move away."""
    for name, node in sorted(book.state.objects["nodes"].items()):
        assert isinstance(node, NodeView)
        for resource, amount in sorted(book.usage.overused(node).items()):
            if resource in book.class_resources:
                yield f"node {name} has {amount} x {resource} less than is booked there"
