"""Workload and WorkloadMonitor as cozystack has them: who uses how much, and whether enough of it works.

The kinds are cozystack's: where it is installed, they are served already and mean the same. A Workload has
no status subresource: whoever writes it writes all of it.
"""

from typing import Annotated

from msgspec import Meta

from schemas.structural import Shape

Amounts = Annotated[dict[str, int | str], Meta(description="Quantities by resource.")]


class WorkloadStatus(Shape, frozen=True, omit_defaults=True):
    """What is used, by what."""

    kind: Annotated[str, Meta(description="What kind of workload it is: postgres, virtual-machine, gpu.")]
    resources: Amounts
    type: Annotated[str, Meta(description="Which part of it; of GPUs the class.")] = ""
    operational: Annotated[bool | None, Meta(description="Whether it works: ready, bound or placed.")] = None


class Workload(Shape, frozen=True, omit_defaults=True):
    """A usage record: what one pod, volume claim, service or GPU claim uses."""

    status: WorkloadStatus | None = None


class MonitorSpec(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """Which objects belong to the workload, and how many of them it needs."""

    selector: Annotated[dict[str, str], Meta(description="Labels that its pods, volume claims and services carry.")]
    kind: Annotated[str, Meta(description="What kind of workload it is.")] = ""
    type: Annotated[str, Meta(description="Which part of it.")] = ""
    version: Annotated[str, Meta(description="Version of the workload.")] = ""
    min_replicas: Annotated[int, Meta(description="Ready pods it needs to be operational.", ge=0)] | None = None
    replicas: Annotated[int, Meta(description="Replicas wished for.", ge=0)] | None = None


class MonitorStatus(Shape, frozen=True, omit_defaults=True, rename="camel"):
    """How many of them there are. `message` and `reason` tell of its DataVolumes alone."""

    operational: Annotated[bool | None, Meta(description="Whether enough of its pods are ready.")] = None
    available_replicas: Annotated[int, Meta(description="Pods that are ready.", ge=0)] = 0
    observed_replicas: Annotated[int, Meta(description="Pods there are.", ge=0)] = 0
    message: Annotated[str, Meta(description="What keeps it from being operational, where that is known.")] = ""
    reason: Annotated[str, Meta(description="The same in one word.")] = ""


class WorkloadMonitor(Shape, frozen=True, omit_defaults=True):
    """Watches over the objects of one workload: makes their usage records, and counts who is ready."""

    spec: MonitorSpec
    status: MonitorStatus | None = None
