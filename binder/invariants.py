"""The promises that every state keeps, each with a name: what a story, a property or a simulation checks.

Pure and thorough, so not cheap: the indexes are derived anew each time.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from binder import invariants_held
from binder.book import ADMITTED_KEPT_NS, Book
from binder.evolve import is_dirty, may_place
from binder.launchers import may_be_served
from binder.skips import START_NS, deadlines_of
from binder.state import GpuSet, State
from binder.usage import units


def check(book: Book) -> list[str]:
    """Return the broken promises, each a sentence that names the object; none is how it should be."""
    return [
        *_indexes(book),
        *_troubles(book),
        *_sets(book.state),
        *_waiting(book),
        *_sessions(book.state),
        *invariants_held.broken(book),
    ]


def _indexes(book: Book) -> Iterator[str]:
    fresh = Book(
        replace(
            book.state,
            dirty_nodes=dict(book.state.dirty_nodes),
            dirty_holdings=dict(book.state.dirty_holdings),
            dirty_budgets=dict(book.state.dirty_budgets),
        )
    )
    for (name, live), (_, derived) in zip(_tables(book), _tables(fresh), strict=True):
        if live != derived:
            yield f"index {name} is {live}, the tables say {derived}"
    for node, amounts in sorted(book.usage.used.items()):
        for resource, amount in sorted(amounts.items()):
            if amount < 0:
                yield f"node {node} gives {amount} of {resource}"


def _tables(book: Book) -> Iterator[tuple[str, object]]:
    usage, line, state = book.usage, book.line, book.state
    yield "used", usage.used
    yield "ranked", usage.ranked
    yield "offered", usage.offered
    yield "references", usage.references
    yield "shares", usage.shares
    yield "line groups", (line.groups, line.bounds)
    yield "line places", line.places
    for name in (
        "pods_by_vmi",
        "pods_by_stamp",
        "volume_pvcs",
        "pvc_vmis",
        "pvc_pods",
        "owner_claims",
        "claim_vms",
        "claim_vmis",
        "class_claims",
    ):
        yield name, getattr(book.index, name).table()
    yield "vmis", book.index.vmis
    yield "claim_sets", book.claim_sets
    yield "class_resources", book.class_resources
    yield "held claims", (book.held.members.table(), book.held.group_of, book.held.freeable)
    yield "held line groups", book.held.line.groups
    yield "held line places", book.held.line.places
    yield "budgets", (book.budgets.limits, book.budgets.used, book.budgets.charges)
    yield "declared", (book.declared.used, book.declared.counted, book.declared.below, book.declared.declarers)
    yield "settings", book.settings
    yield "behind", book.behind
    yield "skips", (book.skips.vms.table(), book.skips.open_dues())
    yield "booked on nodes", (book.troubles.sets.table(), book.troubles.holdings.table(), book.troubles.open_dues())
    yield "class use", (book.class_use.users.table(), book.class_use.due, book.class_use.deleting)
    yield "starts", (book.starts.by_vm.table(), book.starts.unseen)
    yield "patience", book.patience.open_dues()
    yield "deadlines", sorted({due for due in book.deadlines if due[0] > state.now_ns and _is_set(state, due)})


def _is_set(state: State, due: tuple[int, str]) -> bool:
    """Say whether a deadline stands in the state: others are left over from what was overtaken."""
    at_ns, uid = due
    gpu_set, admitted = state.sets.get(uid), state.admitted.get(uid)
    awaited = (*deadlines_of(gpu_set), *deadlines_of(state.holdings.get(uid)))
    asked = state.asked.get(uid)
    return (
        at_ns in awaited
        or (admitted is not None and admitted.at_ns + ADMITTED_KEPT_NS == at_ns)
        or (asked is not None and asked.at_ns + START_NS == at_ns)
    )


def _troubles(book: Book) -> Iterator[str]:
    """What is wrong with each node is known, no trouble began later than now, and one that is over is forgotten."""
    state, booked = book.state, {**book.troubles.sets.table(), **book.troubles.holdings.table()}
    for name in sorted({**dict.fromkeys(booked, True), **dict.fromkeys(state.troubles, True)}):
        known, words = state.troubles.get(name, {}), list(book.troubles.words(name))
        if sorted(known) != sorted(words):
            yield f"node {name} is said to be {sorted(known)}, and is {sorted(words)}"
        if any(since_ns > state.now_ns for since_ns in known.values()):
            yield f"node {name} has a trouble that has not begun"


def _sets(state: State) -> Iterator[str]:
    pods: dict[str, str] = {}
    claims: dict[str, str] = {}
    for uid, gpu_set in sorted(state.sets.items()):
        who = f"set of {gpu_set.vmi.namespace}/{gpu_set.vmi.name} ({uid})"
        if uid != gpu_set.vmi.uid:
            yield f"{who} is kept under another uid than {gpu_set.vmi.uid}"
        if gpu_set.node:
            yield from _booking(who, gpu_set)
            if gpu_set.pod_uid and gpu_set.pod_uid in pods:
                yield f"{who} and that of {pods[gpu_set.pod_uid]} are booked for one pod"
            elif gpu_set.pod_uid:
                pods[gpu_set.pod_uid] = uid
        elif any((gpu_set.pod, gpu_set.pod_uid, gpu_set.requests, gpu_set.pinned, gpu_set.former, gpu_set.stuck_ns)):
            yield f"{who} has no node, and something of a booking"
        if max(gpu_set.confirmed, gpu_set.told) > gpu_set.stamp:
            yield f"{who} was confirmed or told by a decision newer than its newest"
        for claim in gpu_set.claims:
            key = f"{gpu_set.vmi.namespace}/{claim.name}"
            if key in claims:
                yield f"claim {key} is of {who} and of {claims[key]}"
            claims[key] = uid


def _booking(who: str, gpu_set: GpuSet) -> Iterator[str]:
    asked = units(gpu_set)
    if not asked or (not gpu_set.pod_uid and (gpu_set.pinned or gpu_set.former or gpu_set.temporary)):
        yield f"{who} is booked without claims or without a pod"
    if {resource: gpu_set.requests.get(resource, 0) for resource in asked} != asked:
        yield f"{who} asks {asked}, its booked pod requests {gpu_set.requests}"
    if gpu_set.reason is not None or gpu_set.retry_ns:
        yield f"{who} is booked and waits"


def _waiting(book: Book) -> Iterator[str]:
    """Once nothing is dirty, everyone in front of the gate was told why."""
    state = book.state
    said = may_place(state) and not is_dirty(state)
    for uid, gpu_set in sorted(state.sets.items()):
        vmi = book.vmi_of(uid)
        if gpu_set.node or vmi is None:
            continue
        who = f"set of {gpu_set.vmi.namespace}/{gpu_set.vmi.name} ({uid})"
        if said and gpu_set.reason is None and may_be_served(vmi) and book.launcher_of(vmi) is not None:
            yield f"{who} waits and was told no reason"
        if gpu_set.reason is not None and vmi.key not in state.first_wait:
            yield f"{who} waits since no time"


def _sessions(state: State) -> Iterator[str]:
    for kind, session in sorted(state.sessions.items()):
        if session.synced and kind in state.listing:
            yield f"session {session.number} of {kind} is synced in the middle of its list"
        if session.progress > state.events_seq or session.number > state.events_seq:
            yield f"session {session.number} of {kind} is ahead of its time"
