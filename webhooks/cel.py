"""Pieces of CEL that the policies are made of: expressions as text, one idea each."""

from collections.abc import Callable

from schemas import names
from schemas.admission import (
    ACCOUNTS_GROUP,
    CONTROL_PLANE_GROUP,
    CONTROLLER_MANAGER,
    CREATE,
    GATES_FIELD,
    PLATFORM_VERB,
)
from schemas.kinds import GPU_CLAIM, Resource

NEW, OLD = "object", "oldObject"
IS_CREATE = f"request.operation == '{CREATE}'"
IS_GOING = f"{OLD} != null && has({OLD}.metadata.deletionTimestamp)"
"""The object is being deleted already: whoever ends that must not be held up."""

CONTROL_PLANE = f"request.userInfo.username == '{CONTROLLER_MANAGER}' || '{CONTROL_PLANE_GROUP}' in variables.groups"
"""Garbage collector and namespace controller, be it under accounts of their own or as one user."""

GROUPS = "has(request.userInfo.groups) ? request.userInfo.groups : []"
SETTINGS = "has(params.data) ? params.data : {}"


def entry_of(side: str, field: str, key: str) -> str:
    """Return the value of a label or an annotation, '' where it is absent. `field`: labels or annotations."""
    there = f"has({side}.metadata.{field}) && '{key}' in {side}.metadata.{field}"
    return f"({side} != null && {there} ? {side}.metadata.{field}['{key}'] : '')"


def mark_of(side: str, field: str, key: str) -> str:
    """Return a label or an annotation as a list: its value, or nothing. An empty value is there, too."""
    value = f"{side}.metadata.{field}"
    there = f"{side} != null && has({value}) && '{key}' in {value}"
    return f"({there} ? [{value}['{key}']] : [])"


def annotation(side: str, key: str) -> str:
    """Return the value of an annotation, '' where it is absent."""
    return entry_of(side, "annotations", key)


def same(of: Callable[[str], str]) -> str:
    """Say that an expression says the same of the object as it is written and as it was."""
    return f"{of(NEW)} == {of(OLD)}"


def has_finalizer(side: str, finalizer: str) -> str:
    """Say whether the object carries a finalizer."""
    there = f"has({side}.metadata.finalizers) && '{finalizer}' in {side}.metadata.finalizers"
    return f"({side} != null && {there})"


def has_gate(side: str, gate: str) -> str:
    """Say whether a pod is held by a scheduling gate."""
    gates = f"{side}.spec.{GATES_FIELD}"
    there = f"has({gates}) && {gates}.exists(gate, gate.name == '{gate}')"
    return f"({side} != null && {there})"


def may(verb: str, resource: Resource) -> str:
    """Say whether the requester may do this to objects of a kind everywhere, not only in a namespace of its own."""
    return f"authorizer.group('{resource.group}').resource('{resource.plural}').check('{verb}').allowed()"


IS_PLATFORM = may(PLATFORM_VERB, GPU_CLAIM)


def listed(setting: str) -> str:
    """Return the names that a setting lists, divided by commas."""
    return f"variables.settings['{setting}'].split(',').map(name, name.trim())"


IS_CONTROLLER = (
    f"'{names.SETTING_CONTROLLERS}' in variables.settings"
    f" ? request.userInfo.username in {listed(names.SETTING_CONTROLLERS)}"
    f" : '{ACCOUNTS_GROUP}' + params.metadata.namespace in variables.groups"
)
"""The program itself: the users that the settings list, else any account of the namespace that they stand in."""

IS_KUBEVIRT = f"'{ACCOUNTS_GROUP}' + variables.settings['{names.SETTING_KUBEVIRT}'] in variables.groups"
KUBEVIRT_IS_KNOWN = f"has(params.data) && '{names.SETTING_KUBEVIRT}' in params.data"


def label_of(key: str) -> Callable[[str], str]:
    """Return `mark_of` one label."""
    return lambda side: mark_of(side, "labels", key)


def annotation_of(key: str) -> Callable[[str], str]:
    """Return `mark_of` one annotation."""
    return lambda side: mark_of(side, "annotations", key)


def finalizer_of(finalizer: str) -> Callable[[str], str]:
    """Return `has_finalizer` of one finalizer."""
    return lambda side: has_finalizer(side, finalizer)


def data(side: str) -> str:
    """Return what a Secret holds."""
    return f"(has({side}.data) ? {side}.data : {{}})"
