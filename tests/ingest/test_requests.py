"""Effective requests: what a pod takes of a node, by cases and against a plain re-telling of the rule (C33)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.metadata import MalformedObject
from ingest.pods import read_pod
from schemas.objects import PodView
from schemas.quantity import AMOUNT_MAX
from tests.ingest.given import Object, raw

GPU = "nvidia.com/AD102GL_L40S"


def container(amount: object = None, *, limit: object = None, sidecar: bool = False) -> Object:
    """A container that requests so many GPUs, and is limited to so many."""
    made: Object = {"name": "c", "resources": {}}
    if amount is not None:
        made["resources"]["requests"] = {GPU: str(amount)}
    if limit is not None:
        made["resources"]["limits"] = {GPU: str(limit)}
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def requests(**spec: Any) -> dict[str, int]:  # noqa: ANN401 - fields of a pod
    """Return the effective requests of a pod on a node."""
    view = read_pod(raw({"metadata": {"name": "p", "namespace": "a"}, "spec": {"nodeName": "n1", **spec}}))
    assert isinstance(view, PodView)
    return view.requests


@pytest.mark.parametrize(
    ("containers", "init", "used"),
    [
        ([container(1), container(1)], [], 2),
        ([container(1)], [container(3)], 3),
        ([container(1)], [container(1, sidecar=True)], 2),
        ([container(1)], [container(1, sidecar=True), container(3)], 4),
        ([container(1)], [container(3), container(1, sidecar=True)], 3),
        ([container(2)], [container(1, sidecar=True), container(1, sidecar=True), container(1)], 4),
        ([container(limit=2)], [], 2),
        ([container(1, limit=2)], [], 1),
        ([container(0, limit=2)], [], 0),
        ([container()], [container(limit=1)], 1),
    ],
)
def test_c33_what_runs_at_once_is_summed(containers: list[Object], init: list[Object], used: int) -> None:
    """Containers and sidecars together, or one init container with the sidecars before it: the larger (C33)."""
    assert requests(containers=containers, initContainers=init) == ({GPU: used} if used else {})


@pytest.mark.parametrize(
    ("reason", "cpu"), [("Deferred", {"cpu": 3500}), ("Infeasible", {"cpu": 1500}), ("", {"cpu": 3500})]
)
def test_a_pod_in_resize_takes_the_larger_of_both(reason: str, cpu: dict[str, int]) -> None:
    """What is asked or what the kubelet gives, per container; an infeasible wish does not count."""
    asked = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    sidecar = {"name": "side", "resources": {"requests": {"cpu": "100m"}}, "restartPolicy": "Always"}
    status = {
        "conditions": [{"type": "PodResizePending", "reason": reason}],
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "500m"}}
        ],
        "initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "500m"}}}],
    }
    metadata, spec = {"name": "p"}, {"nodeName": "n1", "containers": [asked], "initContainers": [sidecar]}
    view = read_pod(raw({"metadata": metadata, "spec": spec, "status": status}))

    assert isinstance(view, PodView)
    assert view.requests == cpu


def test_overhead_comes_on_top() -> None:
    """The runtime's overhead is added after the larger was taken."""
    spec = {"containers": [container(1)], "initContainers": [container(3)], "overhead": {"memory": "100Mi", GPU: "1"}}

    assert requests(**spec) == {GPU: 4, "memory": 100 * 2**20}


def test_a_pod_as_a_whole_may_declare() -> None:
    """Pod-level cpu, memory and huge pages replace the sum, before overhead; other resources can't be declared so."""
    each = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi", GPU: "1"}}}
    whole = {"requests": {"cpu": "500m", GPU: "7"}, "limits": {"memory": "9Gi", "hugepages-2Mi": "4Mi"}}
    pod = requests(containers=[each, each], resources=whole, overhead={"cpu": "100m"})

    assert pod == {"cpu": 600, "memory": 2 * 2**30, "hugepages-2Mi": 4 * 2**20, GPU: 2}


def test_sums_stay_below_what_a_message_can_carry() -> None:
    """Two containers of the largest amount are as large as one: the pod is still read."""
    assert requests(containers=[container("8E"), container("8E")]) == {GPU: AMOUNT_MAX}


def test_an_unreadable_amount_names_its_container() -> None:
    """The error says which list, which container, which resource."""
    with pytest.raises(MalformedObject, match=r"spec\.initContainers\[c\]\.resources\.limits\[nvidia"):
        requests(containers=[], initContainers=[container(limit="many")])


CONTAINERS = st.lists(st.integers(0, 9).map(container), max_size=4)
INITS = st.lists(st.builds(container, st.integers(0, 9), sidecar=st.booleans()), max_size=5)


@given(CONTAINERS, INITS)
def test_no_moment_of_a_pods_life_takes_more(containers: list[Object], init: list[Object]) -> None:
    """Played through step by step, the largest moment of the pod's life is what is requested (C33)."""
    running, largest = 0, 0
    for step in init:
        amount = int(step["resources"]["requests"][GPU])
        largest = max(largest, running + amount)
        running += amount if "restartPolicy" in step else 0
    total = running + sum(int(each["resources"]["requests"][GPU]) for each in containers)

    assert requests(containers=containers, initContainers=init).get(GPU, 0) == max(largest, total)
