"""The published page of rights: what each account may do in the cluster, and each user in NATS, as Markdown."""

from collections.abc import Iterable

from deploy.nats_rights import INBOXES, PERMISSIONS
from deploy.rights import AGGREGATED, PEOPLE, RIGHTS, Rule

_HEAD = """# Rights

Drawn from `deploy/rights.py` and `deploy/nats_rights.py` by `make generate`; the chart's templates are drawn from the
same. [security.md](security.md) says why each part has what it has, and what follows.

"""


def rights_page() -> str:
    """Return the page."""
    return _HEAD + _accounts() + _people() + _nats()


def _accounts() -> str:
    text = "## Service accounts\n\nThe account of `PART` is `gpubinder-PART`, in the namespace of the installation.\n\n"
    text += "| part | where | what | verbs | of these names | only with |\n|---|---|---|---|---|---|\n"
    for part, rights in RIGHTS.items():
        text += _rows(part, "everywhere", rights.everywhere) + _rows(part, "at home", rights.home)
    return text + "\n"


def _rows(part: str, where: str, rules: Iterable[Rule]) -> str:
    return "".join(
        f"| `{part}` | {where} | {_kinds(rule)} | {', '.join(rule.verbs)} | {_code(rule.only)} "
        f"| {f'`{rule.feature}`' if rule.feature else ''} |\n"
        for rule in rules
    )


def _kinds(rule: Rule) -> str:
    return _code(tuple(f"{kind.plural}/{sub}" if sub else kind.plural for kind, sub in rule.on))


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _people() -> str:
    text = "## People\n\n| ClusterRole | taken in by | what | verbs |\n|---|---|---|---|\n"
    for part, rules in PEOPLE.items():
        for rule in rules:
            taken = _code(AGGREGATED.get(part, ()))
            text += f"| `gpubinder-{part}` | {taken} | {_kinds(rule)} | {', '.join(rule.verbs)} |\n"
    return text + "\n"


def _nats() -> str:
    text = "## Users of NATS\n\nEach may also subscribe to its answers (`_INBOX.>`).\n\n"
    text += "| user | may publish | may hear | may answer |\n|---|---|---|---|\n"
    for user, allowed in PERMISSIONS.items():
        hears = _code(subject for subject in allowed.subscribe if subject != INBOXES)
        text += f"| `{user}` | {_code(allowed.publish)} | {hears} | {'once each' if allowed.answers else ''} |\n"
    return text
