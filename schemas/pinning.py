"""The fields of a launcher that a pin tests and changes, and where they stand in the pod (T21, P1)."""

from typing import Final

import msgspec
from msgspec.structs import replace

from schemas import names
from schemas.objects import NodeSelectorTerm, Requirement

UID_PATH: Final = "/metadata/uid"
STATUS_PATH: Final = "/status"
GATES_PATH: Final = "/spec/schedulingGates"
AFFINITY_PATH: Final = "/spec/affinity"
NODE_AFFINITY_PATH: Final = f"{AFFINITY_PATH}/nodeAffinity"
REQUIRED_PATH: Final = f"{NODE_AFFINITY_PATH}/requiredDuringSchedulingIgnoredDuringExecution"
TERMS_PATH: Final = f"{REQUIRED_PATH}/nodeSelectorTerms"

ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class Gate(msgspec.Struct, frozen=True):
    """A scheduling gate of a pod."""

    name: str


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of which one must accept the node."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"},
):
    """A pod's node affinity; what it merely prefers is not read."""

    required: NodeSelector | None = None


class Affinity(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A pod's affinity; that to other pods is not read."""

    node_affinity: NodeAffinity | None = None


class PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Which pod it is, and whether it is going."""

    uid: str
    resource_version: str = ""
    deletion_timestamp: str | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where the pod may go, where it is, and what holds it back."""

    scheduling_gates: tuple[Gate, ...] = ()
    affinity: Affinity | None = None
    node_name: str = ""

    @property
    def terms(self) -> tuple[NodeSelectorTerm, ...]:
        """Return the required terms, none where nothing is required."""
        node = self.affinity.node_affinity if self.affinity else None
        return node.required.node_selector_terms if node and node.required else ()


class PodStatus(msgspec.Struct, frozen=True):
    """How far the pod has come."""

    phase: str = ""


class Launcher(msgspec.Struct, frozen=True):
    """A pod as far as a pin is concerned."""

    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def gates(self) -> tuple[str, ...]:
        """Return the names of its scheduling gates."""
        return tuple(gate.name for gate in self.spec.scheduling_gates)

    @property
    def over(self) -> bool:
        """Whether it is going or has ended."""
        return self.metadata.deletion_timestamp is not None or self.status.phase in ENDED_PHASES


def pinned(terms: tuple[NodeSelectorTerm, ...], node: str) -> tuple[NodeSelectorTerm, ...]:
    """AND the node's name into every term, since terms are ORed (C18: the name, not the hostname label).

    An empty term matches no node and must stay empty: the API server refuses to fill it.
    """
    pin = pin_of(node)
    return tuple(
        replace(term, match_fields=(*term.match_fields, pin))
        if (term.match_expressions or term.match_fields) and pin not in term.match_fields
        else term
        for term in terms
    )


def pinned_alone(node: str) -> tuple[NodeSelectorTerm, ...]:
    """Return the terms of a pod that required nothing before."""
    return (NodeSelectorTerm(match_fields=(pin_of(node),)),)


def pin_of(node: str) -> Requirement:
    """Return the requirement that accepts this node alone."""
    return Requirement(names.NODE_NAME_FIELD, "In", (node,))
