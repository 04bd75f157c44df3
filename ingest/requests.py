"""What a pod requests in effect: containers, sidecars, init containers, overhead, defaults from limits (C33).

The sum that the scheduler and kubelet make (k8s.io/component-helpers `PodRequests`), with the
defaulting that the API server does on write repeated here, so that a pod from any source reads alike.
"""

from collections.abc import Iterable

import msgspec

from ingest.metadata import amounts
from schemas.quantity import AMOUNT_MAX

SIDECAR = "Always"


class Resources(msgspec.Struct, frozen=True):
    """A container's, or a whole pod's, resource needs as they stand."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container, of whichever list; `restart_policy` Always makes an init container a sidecar."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str = ""


class Present(msgspec.Struct, frozen=True):
    """Something of which only its being there is read."""


class ContainerState(msgspec.Struct, frozen=True):
    """What a container does: it waits, runs or has ended."""

    running: Present | None = None
    terminated: Present | None = None

    @property
    def started(self) -> bool:
        """Whether it was started."""
        return self.running is not None or self.terminated is not None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What a kubelet says of a container; what it gives it differs, while one is resized, from what is asked."""

    name: str
    resources: Resources | None = None
    allocated_resources: dict[str, str] | None = None
    ready: bool = False
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def ran(self) -> bool:
        """Whether the container was ever started."""
        return self.ready or any(state is not None and state.started for state in (self.state, self.last_state))


def effective_requests(
    containers: tuple[Container, ...],
    init_containers: tuple[Container, ...],
    pod_level: Resources | None,
    overhead: dict[str, str] | None,
    statuses: Iterable[ContainerStatus] = (),
    *,
    infeasible: bool = False,
) -> dict[str, int]:
    """Return what the pod takes of a node, in the units of `schemas.objects`, zeros left out.

    The larger of what runs side by side (containers and sidecars) and what each init container needs
    while it runs, with the sidecars started before it; amounts that the whole pod declares replace
    that for cpu, memory and huge pages; then the overhead. A container that is being resized counts
    as the larger of what it asks and what it has, and with `infeasible` as what it has.
    Raises `MalformedObject`.
    """
    given = {status.name: _given(status) for status in statuses if status.resources is not None}
    together: dict[str, int] = {}
    for container in containers:
        _add(
            together,
            _resized(_requests("spec.containers", container), given.get(container.name), infeasible=infeasible),
        )
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init_containers:
        needs = _requests("spec.initContainers", container)
        if container.restart_policy == SIDECAR:
            needs = _resized(needs, given.get(container.name), infeasible=infeasible)
            _add(together, needs)
            _add(sidecars, needs)
            needs = {}
        alone = dict(sidecars)
        _add(alone, needs)
        _raise_to(peak, alone)
    _raise_to(together, peak)
    if pod_level is not None:
        together.update(_pod_level(pod_level, together))
    _add(together, amounts("spec.overhead", overhead))
    return {resource: amount for resource, amount in together.items() if amount}


def _requests(field: str, container: Container) -> dict[str, int]:
    resources = container.resources
    if resources is None:
        return {}
    field = f"{field}[{container.name}].resources"
    limits = amounts(f"{field}.limits", resources.limits)
    return {**limits, **amounts(f"{field}.requests", resources.requests)}


def _given(status: ContainerStatus) -> dict[str, int]:
    field = f"status.containerStatuses[{status.name}]"
    given = amounts(f"{field}.resources.requests", status.resources.requests if status.resources else None)
    _raise_to(given, amounts(f"{field}.allocatedResources", status.allocated_resources))
    return given


def _resized(asked: dict[str, int], given: dict[str, int] | None, *, infeasible: bool) -> dict[str, int]:
    if given is None:
        return asked
    larger = {} if infeasible else dict(asked)
    _raise_to(larger, given)
    return larger


def _pod_level(resources: Resources, summed: dict[str, int]) -> dict[str, int]:
    """Return the amounts the pod declares as a whole; a limit counts where nothing requests the resource."""
    limits = amounts("spec.resources.limits", resources.limits)
    declared = {resource: amount for resource, amount in limits.items() if resource not in summed}
    declared |= amounts("spec.resources.requests", resources.requests)
    return {resource: amount for resource, amount in declared.items() if _is_pod_level(resource)}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for resource, amount in more.items():
        # Saturated: a sum that no message could carry must not stop the pods around it.
        total[resource] = min(total.get(resource, 0) + amount, AMOUNT_MAX)


def _raise_to(total: dict[str, int], floor: dict[str, int]) -> None:
    for resource, amount in floor.items():
        total[resource] = max(total.get(resource, 0), amount)
