"""The templates of the chart that are drawn from the code: kinds, rights, webhooks, policies, NATS permissions.

Objects are dumped as YAML; what an installation decides stands in them as a placeholder, and becomes a template
action here. So chart and program never disagree on a selector, a verb or a subject.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.nats_rights import PERMISSIONS
from deploy.rights import AGGREGATED, CLEANER, PEOPLE, RIGHTS, Rule
from schemas.crds import crds
from schemas.kinds import RBAC_GROUP, WORKLOAD, WORKLOAD_MONITOR
from webhooks.configuration import Service
from webhooks.policies import policy_objects
from webhooks.registration import configurations

CHART: Final = Path(__file__).parent / "chart"
TEMPLATES: Final = CHART / "templates"
SERVICE_NAME: Final = "gpubinder-webhooks"

_HEAD: Final = "{{- /* Drawn from %s by `make generate`; edits are lost. */ -}}\n"
_NAMESPACE, _PORT, _CA, _LABELS = "__NAMESPACE__", 60_001, b"__CA__", "__LABELS__"
_TAKEN: Final = ("alerts", "dashboards")
_SHARED: Final = (WORKLOAD, WORKLOAD_MONITOR)
"""Kinds that a cozystack cluster serves already, under a switch of their own."""


def chart_files() -> dict[Path, str]:
    """Return what each drawn template must hold."""
    files = {
        TEMPLATES / "webhooks" / "configuration.yaml": _webhooks(),
        TEMPLATES / "webhooks" / "policies.yaml": _policies(),
        TEMPLATES / "nats" / "_users.tpl": _nats_users(),
        TEMPLATES / "rbac" / "people.yaml": _people(),
    }
    files |= {TEMPLATES / "rbac" / f"{part}.yaml": _rights(part) for part in RIGHTS}
    return files | {TEMPLATES / "crds" / f"{crd['metadata']['name']}.yaml": _crd(crd) for crd in crds()}


def chart_copies(files: Mapping[Path, str]) -> dict[Path, str]:
    """Return the generated files with those beside them that the chart takes along: Helm reads nothing outside."""
    taken = {path: text for path, text in files.items() if path.parent.name in _TAKEN and CHART not in path.parents}
    return dict(files) | {CHART / "files" / path.parent.name / path.name: text for path, text in taken.items()}


def _dump(*objects: dict[str, Any]) -> str:
    """Dump objects as YAML documents in which nothing reads as a template action but our own placeholders."""
    text = yaml.safe_dump_all(objects, sort_keys=False, width=120).replace("{{", '{{ "{{" }}')
    text = text.replace(_NAMESPACE, "{{ .Release.Namespace }}")
    return re.sub(rf"^( *)labels: {_LABELS}$", _labels, text, flags=re.MULTILINE)


def _labels(found: re.Match[str]) -> str:
    return f'{found[1]}labels: {{{{- include "gpubinder.labels" . | nindent {len(found[1]) + 2} }}}}'


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _crd(crd: dict[str, Any]) -> str:
    metadata = {"name": crd["metadata"]["name"], "labels": _LABELS}
    text = _dump(crd | {"metadata": metadata})
    kept = '  {{- include "gpubinder.keepCrds" . | nindent 2 }}\n'
    text = re.sub(r"^( *labels: \{\{.*\}\}\n)", lambda found: found[1] + kept, text, count=1, flags=re.MULTILINE)
    shared = crd["metadata"]["name"] in {f"{kind.plural}.{kind.group}" for kind in _SHARED}
    condition = "and .Values.crds.install .Values.crds.workloads" if shared else ".Values.crds.install"
    return _HEAD % "schemas/crds.py" + _when(condition, text)


def _webhooks() -> str:
    bodies = [body for _, body in configurations(Service(_NAMESPACE, SERVICE_NAME, _PORT), _CA, _NAMESPACE)]
    for body in bodies:
        body["metadata"]["labels"] = _LABELS
    text = _dump(*bodies).replace(str(_PORT), "{{ .Values.webhooks.service.port }}")
    text = re.sub(
        r"^( *)caBundle: .*$",
        lambda found: f'{found[1]}{{{{- include "gpubinder.caBundle" . | nindent {len(found[1])} }}}}',
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^( *labels: \{\{.*\}\}\n)",
        lambda found: found[1] + '  {{- include "gpubinder.injectCa" . | nindent 2 }}\n',
        text,
        flags=re.MULTILINE,
    )
    return _HEAD % "webhooks/registration.py" + _when(".Values.enabled", text)


def _policies() -> str:
    objects = [body | {"metadata": body["metadata"] | {"labels": _LABELS}} for body in policy_objects(_NAMESPACE)]
    return _HEAD % "webhooks/policies.py" + _when("and .Values.enabled .Values.policies.enabled", _dump(*objects))


def _metadata(name: str, *, home: bool = False) -> dict[str, Any]:
    return {"name": name} | ({"namespace": _NAMESPACE} if home else {}) | {"labels": _LABELS}


def _rules(rules: tuple[Rule, ...]) -> str:
    """Return the rules as YAML, each that needs a feature under its switch."""
    text = ""
    for rule in rules:
        told = _dump_rule(rule)
        text += _when(rule.feature.condition, told) if rule.feature else told
    return text


def _dump_rule(rule: Rule) -> str:
    lines = yaml.safe_dump([rule.manifest()], sort_keys=False, width=120, default_flow_style=None)
    return str(lines)


def _grant(part: str, rules: tuple[Rule, ...], *, home: bool) -> str:
    """Return a role and its binding to the part's service account, in the namespace (`home`) or everywhere."""
    if not rules:
        return ""
    name, kind = f"gpubinder-{part}", "Role" if home else "ClusterRole"
    head = {"apiVersion": f"{RBAC_GROUP}/v1"}
    role = _dump(head | {"kind": kind, "metadata": _metadata(name, home=home)}) + "rules:\n" + _rules(rules)
    binding = head | {
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, home=home),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}],
    }
    return f"---\n{role}---\n{_dump(binding)}"


def _rights(part: str) -> str:
    rights = RIGHTS[part]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(f"gpubinder-{part}", home=True)}
    text = _dump(account) + _grant(part, rights.everywhere, home=False) + _grant(part, rights.home, home=True)
    if part == CLEANER:
        # Its account is there while a removal runs, and no longer.
        text = _hooked(text)
    condition = _CONDITIONS.get(part)
    return _HEAD % "deploy/rights.py" + (_when(condition, text) if condition else text)


def _hooked(text: str) -> str:
    mark = '  annotations: {{- include "gpubinder.removalHook" (list . -10) | nindent 4 }}\n'
    return re.sub(r"^( *labels: .*\n)", lambda found: found[1] + mark, text, flags=re.MULTILINE)


_CONDITIONS: Final = {
    "webhooks": ".Values.enabled",
    "accounting": ".Values.accounting.enabled",
    "adopt": ".Values.adopt.enabled",
    "uninstall": ".Values.uninstall.enabled",
}


def _people() -> str:
    text = ""
    for part, rules in PEOPLE.items():
        marks = {f"{RBAC_GROUP}/aggregate-to-{role}": "true" for role in AGGREGATED.get(part, ())}
        body = {"apiVersion": f"{RBAC_GROUP}/v1", "kind": "ClusterRole", "metadata": _metadata(f"gpubinder-{part}")}
        told = _dump(body)
        if marks:
            added = "".join(f'    {key}: "{value}"\n' for key, value in marks.items())
            told = re.sub(r"^( *labels: .*\n)", lambda found, added=added: found[1] + added, told, flags=re.MULTILINE)  # type: ignore[misc]  # bound early
        text += f"---\n{told}rules:\n{_rules(rules)}"
    return _HEAD % "deploy/rights.py" + text


def _nats_users() -> str:
    users = "\n".join(
        f"{{ user: {user}, password: $NATS_{user.upper()}_PASSWORD, permissions: {permissions.conf()} }}"
        for user, permissions in sorted(PERMISSIONS.items())
    )
    return (
        _HEAD % "deploy/nats_rights.py"
        + f'{{{{- define "gpubinder.nats.users" -}}}}\n{users}\n{{{{- end }}}}\n'
        + f'{{{{- define "gpubinder.nats.userNames" -}}}}\n{" ".join(sorted(PERMISSIONS))}\n{{{{- end }}}}\n'
    )
