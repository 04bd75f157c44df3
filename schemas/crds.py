"""The CustomResourceDefinitions, made from the types: schema, rules, printer columns, short names."""

from typing import Any

import msgspec

from schemas.budgets import GpuBudget
from schemas.claims import PLACED_CONDITION, Claim
from schemas.classes import GpuClass
from schemas.kinds import CRD, GPU_BUDGET, GPU_CLAIM, GPU_CLASS, WORKLOAD, WORKLOAD_MONITOR, Resource
from schemas.structural import Shape, structural
from schemas.workloads import Workload, WorkloadMonitor

CATEGORY = "gpu"
"""`kubectl get gpu` lists classes, claims and budgets together."""


class Column(msgspec.Struct, frozen=True, omit_defaults=True, rename={"json_path": "jsonPath"}):
    """One column of `kubectl get`; `priority` 1 shows it with `-o wide` alone."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int = 0


def _placed(field: str) -> str:
    return f".status.conditions[?(@.type=='{PLACED_CONDITION}')].{field}"


_AGE = Column("Age", "date", ".metadata.creationTimestamp", "Since when it exists.")

CLAIM_COLUMNS = (
    Column("Class", "string", ".spec.className", "What is asked for."),
    Column("Count", "integer", ".spec.count", "How many units."),
    Column("Phase", "string", ".status.phase", "Where it stands."),
    Column("Node", "string", ".status.nodeName", "Where the units are."),
    Column("VM", "string", ".status.attachedTo.name", "Who holds it."),
    Column("Reason", "string", _placed("reason"), "Why it stands there."),
    _AGE,
    Column("Queue", "integer", ".status.queuePosition", "Place in line while it waits.", priority=1),
    Column("Resource", "string", ".status.resourceName", "What the units are counted by.", priority=1),
    Column("Message", "string", _placed("message"), "Why, in a sentence.", priority=1),
)

CLASS_COLUMNS = (
    Column("Resource", "string", ".spec.resourceName", "What device plugins call it."),
    Column("Mode", "string", ".spec.mode", "Whole devices or slices."),
    Column("Max", "integer", ".spec.maxCount", "Most units for one machine."),
    Column("Allocatable", "integer", ".status.allocatable", "Units that nodes offer."),
    Column("Held", "integer", ".status.held", "Units that are booked."),
    Column("Free", "integer", ".status.free", "Units that could be booked."),
    Column("MostFree", "integer", ".status.mostFree", "Free units on the node that has most of them."),
    _AGE,
)

BUDGET_COLUMNS = (
    Column("Used", "string", ".status.usage", "Held of allowed units, by key."),
    Column("Declared", "string", ".status.asks", "Declared of allowed units, by key."),
    Column("Binds", "string", ".status.boundBy", "Which budgets leave least: its own, or an ancestor's."),
    _AGE,
)

WORKLOAD_COLUMNS = (
    Column("Kind", "string", ".status.kind", "What kind of workload it is."),
    Column("Type", "string", ".status.type", "Which part of it; of GPUs the class."),
    Column("CPU", "string", ".status.resources.cpu", "Processors requested."),
    Column("Memory", "string", ".status.resources.memory", "Memory requested."),
    Column("Operational", "boolean", ".status.operational", "Whether it works."),
)

MONITOR_COLUMNS = (
    Column("Kind", "string", ".spec.kind", "What kind of workload it is."),
    Column("Type", "string", ".spec.type", "Which part of it."),
    Column("Version", "string", ".spec.version", "Version of the workload."),
    Column("Replicas", "integer", ".spec.replicas", "Replicas wished for."),
    Column("MinReplicas", "integer", ".spec.minReplicas", "Replicas it needs to be operational."),
    Column("Available", "integer", ".status.availableReplicas", "Pods that are ready."),
    Column("Observed", "integer", ".status.observedReplicas", "Pods there are."),
    Column("Operational", "boolean", ".status.operational", "Whether enough of them are ready."),
)


def _crd(
    resource: Resource, shape: type[Shape], columns: tuple[Column, ...], *, short: str = "", status: bool = True
) -> dict[str, Any]:
    """Draw one CRD. Without a `short` name it is no kind of ours, and in no category of ours."""
    schema = structural(shape)
    ours = {"shortNames": [short], "categories": [CATEGORY]} if short else {}
    known = {
        "apiVersion": {"type": "string", "description": "Version of this shape of the object."},
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": {"type": "object"},
    }
    schema["properties"] = known | schema["properties"]
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                **ours,
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    **({"subresources": {"status": {}}} if status else {}),
                    "additionalPrinterColumns": [msgspec.to_builtins(column) for column in columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def crds() -> tuple[dict[str, Any], ...]:
    """Return every CRD of ours, and those of cozystack's that we write, as plain data."""
    return (
        _crd(GPU_CLASS, GpuClass, CLASS_COLUMNS, short="gclass"),
        _crd(GPU_CLAIM, Claim, CLAIM_COLUMNS, short="gclaim"),
        _crd(GPU_BUDGET, GpuBudget, BUDGET_COLUMNS, short="gbudget"),
        _crd(WORKLOAD, Workload, WORKLOAD_COLUMNS, status=False),
        _crd(WORKLOAD_MONITOR, WorkloadMonitor, MONITOR_COLUMNS),
    )
