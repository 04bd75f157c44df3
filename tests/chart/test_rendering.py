"""The chart as text: golden files of the main ways to install it, and what must hold in each of them."""

import os
from pathlib import Path
from typing import Any

import pytest

from deploy.chart_files import CHART, SERVICE_NAME
from deploy.role_names import Role
from tests.chart.golden_files import GOLDEN, golden_text
from tests.chart.helm import HelmFailed, helm, rendered
from tests.chart.value_sets import SECRET_CERTIFICATE, VALUE_SETS
from webhooks.configuration import Service
from webhooks.policies import policy_objects
from webhooks.registration import configurations

Objects = list[dict[str, Any]]
PODDED = ("Deployment", "StatefulSet", "Job")


def of_kind(objects: Objects, *kinds: str) -> Objects:
    """Return the objects of some kinds."""
    return [body for body in objects if body["kind"] in kinds]


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    """Return the one object of a kind and a name."""
    (found,) = [body for body in of_kind(objects, kind) if body["metadata"]["name"] == name]
    return found


@pytest.mark.parametrize("values", sorted(VALUE_SETS))
def test_it_renders_as_it_was_looked_at(values: str, helm_home: Path) -> None:
    """Each main way to install the chart renders what the golden file shows."""
    text = golden_text(rendered(VALUE_SETS[values], helm_home))
    golden = GOLDEN / f"{values}.yaml"
    if os.environ.get("REDRAW"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)

    assert text == golden.read_text(), (
        "look at what changed, then: REDRAW=1 .venv/bin/python -m pytest -q tests/chart/test_rendering.py"
    )


@pytest.mark.parametrize("values", sorted(VALUE_SETS))
def test_helm_finds_nothing_to_complain_of(values: str, helm_home: Path) -> None:
    """`helm lint --strict` passes for each main way to install the chart."""
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=VALUE_SETS[values], home=helm_home)


@pytest.mark.parametrize("values", sorted(VALUE_SETS))
def test_no_pod_may_more_than_it_must(values: str, helm_home: Path) -> None:
    """Every pod runs as nobody, with a read-only root, without capabilities, under the runtime's seccomp profile."""
    templates = [body["spec"]["template"]["spec"] for body in of_kind(rendered(VALUE_SETS[values], helm_home), *PODDED)]

    assert templates
    for spec in templates:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any(key in spec for key in ("hostNetwork", "hostPID", "hostIPC"))
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}


def test_with_gpus_off_nothing_stands_before_anybody(helm_home: Path) -> None:
    """I1: no Service, certificate, webhook, policy or metrics port; one of each role serves finalizers (F1)."""
    objects = rendered({"enabled": False}, helm_home)
    deployments = of_kind(objects, "Deployment")

    assert not [body for body in objects if "admissionregistration" in body["apiVersion"]]
    assert [body["metadata"]["name"] for body in of_kind(objects, "Service")] == ["gpubinder-nats"]
    assert [body["metadata"]["name"] for body in of_kind(objects, "Secret")] == ["gpubinder-nats-users"]
    assert [body["metadata"]["name"] for body in of_kind(objects, "PodDisruptionBudget")] == ["gpubinder-nats"]
    assert {body["metadata"]["name"] for body in deployments} == {
        f"gpubinder-{role}" for role in Role if role is not Role.WEBHOOKS
    }
    for body in deployments:
        assert body["spec"]["replicas"] == 1
        assert "ports" not in body["spec"]["template"]["spec"]["containers"][0]
    assert named(objects, "ConfigMap", "gpubinder-settings")["data"]["enabled"] == "false"


def test_with_gpus_on_each_role_is_there_twice(helm_home: Path) -> None:
    """I3: two replicas of each role, spread over nodes, of which one at a time may be taken away."""
    objects = rendered({}, helm_home)
    for role in Role:
        spec = named(objects, "Deployment", f"gpubinder-{role}")["spec"]
        budget = named(objects, "PodDisruptionBudget", f"gpubinder-{role}")["spec"]

        assert spec["replicas"] == 2
        assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}
        assert {one["topologyKey"] for one in spec["template"]["spec"]["topologySpreadConstraints"]} == {
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        }


def test_who_must_stop_tells_at_two_scrapes(helm_home: Path) -> None:
    """A process that must not go on keeps its pages up for more than two intervals of the ServiceMonitor."""
    objects = rendered({"metrics": {"serviceMonitor": {"enabled": True}}}, helm_home)
    interval = named(objects, "ServiceMonitor", "gpubinder")["spec"]["endpoints"][0]["interval"]
    for role in Role:
        [container] = named(objects, "Deployment", f"gpubinder-{role}")["spec"]["template"]["spec"]["containers"]
        [told] = [one["value"] for one in container["env"] if one["name"] == "GPUBINDER_TELL_END"]
        assert int(told) > 2 * int(interval.removesuffix("s"))


def test_the_logs_limits_follow_the_stores(helm_home: Path) -> None:
    """T8: the Job that makes the streams is told what JetStream may fill, of the chart's NATS or of another."""
    other = {"server": {"enabled": False}, "urls": ["nats://nats:4222"]}
    for nats, told in (
        ({}, ["--store=18GB"]),
        ({"server": {"storage": {"limit": "900MB"}}}, ["--store=900MB"]),
        (other, []),
        ({**other, "store": "1TB"}, ["--store=1TB"]),
    ):
        [job] = [
            body
            for body in of_kind(rendered({"nats": nats}, helm_home), "Job")
            if body["metadata"]["name"].startswith("gpubinder-adopt-")
        ]
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert [word for word in container["args"] if word.startswith("--store")] == told


def test_what_the_api_server_asks_is_what_the_code_says(helm_home: Path) -> None:
    """Webhooks and policies render as the code makes them: no selector is wider in the chart (C24, I2)."""
    objects = rendered(SECRET_CERTIFICATE, helm_home, namespace="gpus")
    bundle = SECRET_CERTIFICATE["webhooks"]["certificate"]["caBundle"].encode()

    for _, wanted in configurations(Service("gpus", SERVICE_NAME), bundle, "gpus"):
        shown = named(objects, wanted["kind"], wanted["metadata"]["name"])
        assert shown["webhooks"] == wanted["webhooks"]
    for body in policy_objects("gpus"):
        assert named(objects, body["kind"], body["metadata"]["name"])["spec"] == body["spec"]


def test_each_part_has_credentials_of_its_own(helm_home: Path) -> None:
    """A role's pod holds the password of its own user of NATS, and runs under its own account."""
    objects = rendered({}, helm_home)
    for body in of_kind(objects, "Deployment"):
        role = body["metadata"]["name"].removeprefix("gpubinder-")
        spec = body["spec"]["template"]["spec"]
        keys = [one["valueFrom"]["secretKeyRef"]["key"] for one in spec["containers"][0]["env"] if "valueFrom" in one]
        assert keys == [role]
        assert spec["serviceAccountName"] == f"gpubinder-{role}"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replica": 3}, "replica"),
    ({"settings": {"startPolicy": "Never"}}, "startPolicy"),
    ({"nats": {"server": {"servers": 2}}}, "servers"),
    ({"nats": {"server": {"enabled": False}}}, "nats.urls"),
    ({"nats": {"urls": ["http://nats:4222"]}}, "urls"),
    ({"webhooks": {"certificate": {"from": "secret"}}}, "secretName"),
    ({"image": {"digest": "abc"}}, "digest"),
]


@pytest.mark.parametrize(("values", "named_in_error"), REFUSED, ids=[name for _, name in REFUSED])
def test_wrong_values_are_refused_by_name(values: dict[str, Any], named_in_error: str, helm_home: Path) -> None:
    """What can't be meant is refused when it is given, and the error names it."""
    with pytest.raises(HelmFailed, match=named_in_error):
        rendered(values, helm_home)
