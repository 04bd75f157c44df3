"""The words of a story read into views, and decisions told in words.

A word with `=` is an option; other words are names or flags. Amounts: `cpu=2` is two cores, `l40s=2` two units
of nvidia.com/L40S. Terms: `affinity=zone:In:a,b&gpu:Exists` is one term, a second option is ORed with it;
`@` before the key asks for a field.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from binder.telling import AboutClaims, every_claim
from schemas import decisions as d
from schemas.names import BUDGET_CLASS_PREFIX, BUDGET_TOTAL
from schemas.objects import NodeSelectorTerm, Requirement, Taint, Toleration

NAMESPACE: Final = "t"
CORES: Final = 1000


class Words:
    """One line of a story, without its first word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.names = [word for word in words if "=" not in word]
        self.options: dict[str, list[str]] = {}
        for word in words:
            if "=" in word:
                key, _, value = word.partition("=")
                self.options.setdefault(key, []).append(value)

    def flag(self, name: str) -> bool:
        """Say whether a flag was given, and take it out of the names."""
        if name in self.names:
            self.names.remove(name)
            return True
        return False

    def every(self, key: str) -> list[str]:
        """Take every value of an option."""
        return self.options.pop(key, [])

    def one(self, key: str, default: str = "") -> str:
        """Take the only value of an option."""
        return (self.every(key) or [default])[-1]

    def pairs(self, key: str) -> dict[str, str]:
        """Take an option's values `key:value`."""
        return dict(value.split(":", 1) for value in self.every(key))

    def terms(self, key: str = "affinity") -> tuple[NodeSelectorTerm, ...] | None:
        """Take node selector terms, None where none are given."""
        found = [_term(value) for value in self.every(key)]
        return tuple(found) if found else None

    def amounts(self) -> dict[str, int]:
        """Take what is left as amounts of resources."""
        return {resource(key): int(values[-1]) * (CORES if key == "cpu" else 1) for key, values in self.options.items()}

    def entries(self, classes: Sequence[str]) -> str:
        """Take the amounts of classes, and the claims it uses, as the annotation of a VM."""
        wanted = [(key, int(self.one(key))) for key in list(self.options) if key in classes]
        entries: list[dict[str, int | str]] = [{"className": key, "count": count} for key, count in wanted]
        entries += [{"claimName": name} for name in self.every("uses")]
        return msgspec.json.encode(entries).decode()


def resource(word: str) -> str:
    """Return the resource that a word stands for."""
    return word if "/" in word or word in {"cpu", "memory"} else f"nvidia.com/{word.upper()}"


def _term(text: str) -> NodeSelectorTerm:
    labels: list[Requirement] = []
    fields: list[Requirement] = []
    for part in text.split("&"):
        key, operator, values = (*part.split(":"), "", "")[:3]
        need = Requirement(key.removeprefix("@"), operator, tuple(values.split(",")) if values else ())
        (fields if key.startswith("@") else labels).append(need)
    return NodeSelectorTerm(tuple(labels), tuple(fields)) if text else NodeSelectorTerm()


def toleration(text: str) -> Toleration:
    """Read `key=value:Effect`, `key:Effect`, `key`, `*:Effect` or `*`: with a value Equal, else Exists."""
    key, _, effect = text.partition(":")
    key, _, value = key.partition("=")
    return Toleration("" if key == "*" else key, "Equal" if value else "Exists", value, effect)


def taint(text: str) -> Taint:
    """Read `key=value:Effect`."""
    key, _, effect = text.partition(":")
    key, _, value = key.partition("=")
    return Taint(key, value, effect)


def term_text(term: NodeSelectorTerm) -> str:
    """Tell a term as stories write it."""
    needs = [(need.key, need) for need in term.match_expressions]
    needs += [(f"@{need.key}", need) for need in term.match_fields]
    return "&".join(
        f"{key}:{need.operator}" + (f":{','.join(need.values)}" if need.values else "") for key, need in needs
    )


def told(decision: d.Decision) -> str:
    """Tell a decision in a line."""
    match decision:
        case d.SetOpened():
            claims = ", ".join(f"{one.class_name} x{one.count} by {one.resource}" for one in every_claim(decision))
            return f"opens {_who(decision.vmi)}: {claims}"
        case d.SetPlaced():
            terms = " or ".join(term_text(term) for term in decision.terms)
            return f"places {_who(decision.vmi)} on {decision.node} for {decision.pod}" + (
                f" if {terms}" if terms else ""
            )
        case d.SetBooked():
            claims = ", ".join(f"{one.class_name} x{one.count} by {one.resource}" for one in every_claim(decision))
            return f"books {_who(decision.vmi)} on {decision.node} for {decision.request}: {claims}"
        case d.StartHeld():
            return f"{_who(decision.vmi)} is not decided yet: {decision.reason}"
        case d.SetWaits():
            return f"{_who(decision.vmi)} waits: {decision.reason}{_bound(decision.over)}"
        case d.SetReleased():
            return f"releases {_who(decision.vmi)} from {decision.node}: {decision.reason}"
        case d.NodeSkipped():
            return f"skips {decision.node} for {_who(decision.vmi)}, {decision.cause}: {decision.pod} goes"
        case d.SetClosed():
            return f"closes {_who(decision.vmi)}"
        case d.PodAdmitted():
            tolerations = ", ".join(_toleration(one) for one in decision.tolerations)
            gate = "gated" if decision.gate else f"pinned to {decision.node}" if decision.node else "not gated"
            return f"admits the launcher of {_who(decision.vmi)} as {decision.request}, {gate}" + (
                f", tolerating {tolerations}" if tolerations else ""
            )
        case d.VmiAdmitted():
            return f"admits VMI {decision.name} under {decision.policy}"
        case d.WritePassed():
            return f"lets {decision.name} be written"
        case d.Refused():
            return f"refuses {decision.name}: {decision.reason}"
        case d.Commanded():
            return f"{'does' if decision.done else 'refuses'} {decision.order}: {decision.answer}"
        case d.Rejected():
            return f"rejects: {decision.why}"
        case d.LicenceCopied():
            return f"copies the licence of {decision.gpu_class} to {decision.namespace}/{decision.name}"
        case d.LicenceDropped():
            return f"drops {decision.namespace}/{decision.name} ({decision.uid or 'unseen'})"
        case d.LicenceBlocked():
            return f"can't write {decision.namespace}/{decision.name}: {decision.message}"
        case d.LicenceMissing():
            return f"says of class {decision.name}: {decision.reason}"
        case _:
            return _told_of_claims(decision)


def _told_of_claims(decision: AboutClaims) -> str:
    match decision:
        case d.VmiGivenUp():
            return f"gives up {_who(decision.vmi)} on {decision.node}: {decision.reason}"
        case d.NodeKept():
            return f"keeps {decision.node or 'no node'} for {_who(decision.vmi)}"
        case d.HeldPlaced():
            return f"puts {_held(decision)} on {decision.node}: {decision.why}"
        case d.HeldLost():
            return f"loses {_held(decision)} on {decision.node}: {decision.reason}"
        case d.HeldWaits():
            return f"{_held(decision)} waits: {decision.reason}{_bound(decision.over)}"
        case d.ClaimDropped():
            return f"drops claim {decision.name} ({decision.uid})"
        case d.HeldFreed():
            return f"frees claim {decision.name} ({decision.uid})"
        case d.ClassGuarded():
            return f"guards class {decision.name}"
        case d.ClassFreed():
            return f"frees class {decision.name}"
        case d.LauncherAdopted():
            return f"takes over the launcher of {_who(decision.vmi)}: {', '.join(decision.requests)}"
        case d.SetAdopted():
            claims = ", ".join(f"{one.class_name} x{one.count} by {one.resource}" for one in every_claim(decision))
            shared = f", beside {decision.former}" if decision.former else ""
            return f"takes over {_who(decision.vmi)} on {decision.node} with {decision.pod}{shared}: {claims}"
        case d.HeldAdopted():
            where = f"on {decision.node}" if decision.node else f"as lost: {decision.lost}"
            return f"takes over {_held(decision)} {where}"
        case d.Adopted():
            return f"has taken over {decision.sets} sets, {decision.held} claims"


def _toleration(one: Toleration) -> str:
    return (
        f"{one.key or '*'} {one.operator}{f' {one.value}' if one.value else ''}{f' {one.effect}' if one.effect else ''}"
    )


def _held(decision: d.HeldPlaced | d.HeldLost | d.HeldWaits | d.HeldAdopted) -> str:
    return "claim " + ", ".join(claim.name for claim in decision.claims)


def _who(vmi: d.VmiId) -> str:
    return vmi.name if vmi.uid == f"uid-{vmi.name}" else f"{vmi.name} ({vmi.uid})"


def counted(decisions: Sequence[d.Decision]) -> list[str]:
    """Tell many decisions by kind."""
    kinds = Counter(type(decision).__name__ for decision in decisions if not isinstance(decision, d.PodAdmitted))
    return [f"{count} {kind}" for kind, count in sorted(kinds.items())]


def _bound(over: d.Over | None) -> str:
    """Tell the budget that somebody waits for."""
    if over is None:
        return ""
    key = over.key.removeprefix(BUDGET_CLASS_PREFIX)
    return f", {over.budget} allows {over.hard} {key}, {over.used} are held, {over.asked} asked"


def budget_key(word: str) -> str:
    """Return the budget key that a word stands for: `total`, a class, or a resource with a `/`."""
    return BUDGET_TOTAL if word == "total" else word if "/" in word else BUDGET_CLASS_PREFIX + word
