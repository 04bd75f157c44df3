"""The model API server asks about what the real one asks about: conditions are said twice, and held together here."""

from typing import Any

import pytest

from deploy.asked_in_memory import CONDITIONS, entries, hook_of
from schemas.admission import BUDGETS_DOMAIN, CONTROLLER_MANAGER, CREATE, UPDATE
from schemas.kinds import VM
from schemas.names import GPUS_ANNOTATION

HOME = "gpubinder-system"
GPUS = '[{"className":"card"}]'
OWNER = {"uid": "u-1", "controller": True}
Case = tuple[str, dict[str, Any] | None, dict[str, Any], str, bool]


def vm(*owners: dict[str, Any], gpus: str = GPUS, replicas: int | None = None) -> dict[str, Any]:
    """Return a VM as the conditions look at it."""
    template = {"metadata": {"annotations": {GPUS_ANNOTATION: gpus} if gpus else {}}}
    spec: dict[str, Any] = {"template": template} | ({"replicas": replicas} if replicas is not None else {})
    return {"metadata": {"name": "vm", "ownerReferences": list(owners)}, "spec": spec}


CASES: dict[str, Case] = {
    "new": (CREATE, None, vm(), "tenant", True),
    "new without GPUs": (CREATE, None, vm(gpus=""), "tenant", False),
    "the same": (UPDATE, vm(OWNER), vm(OWNER), "tenant", False),
    "other entries": (UPDATE, vm(gpus="[]"), vm(), "tenant", True),
    "more replicas": (UPDATE, vm(replicas=1), vm(replicas=2), "tenant", True),
    "owner taken off": (UPDATE, vm(OWNER), vm(), "tenant", True),
    "another owner": (UPDATE, vm(OWNER), vm(OWNER | {"uid": "u-2"}), "tenant", True),
    "an owner that controls nothing": (UPDATE, vm(OWNER), vm(OWNER, {"uid": "u-3"}), "tenant", False),
    "owner taken off by the collector": (UPDATE, vm(OWNER), vm(), CONTROLLER_MANAGER, False),
    "owner taken off, no GPUs": (UPDATE, vm(OWNER, gpus=""), vm(gpus=""), "tenant", False),
}


@pytest.mark.parametrize("case", CASES)
def test_t20_the_model_asks_about_writes_as_the_real_server_does(case: str) -> None:
    """T20: new entries, more replicas and another owner, but for what the control plane takes off."""
    operation, old, new, who, asked = CASES[case]
    (entry,) = [one for one in entries(HOME) if one["name"] == f"{VM.plural}.{BUDGETS_DOMAIN}"]
    request = {
        "operation": operation,
        "subResource": "",
        "resource": {"resource": VM.plural},
        "object": new,
        "oldObject": old,
        "userInfo": {"username": who, "groups": []},
    }

    concerns = hook_of(entry, _unasked, HOME).when

    assert concerns is not None
    assert concerns(request) is asked


async def _unasked(_: bytes) -> bytes:
    raise AssertionError


def test_each_condition_of_the_configurations_is_known_to_the_model() -> None:
    """A condition that the configurations name and the model lacks would be asked about in no test."""
    named = {condition["name"] for one in entries(HOME) for condition in one.get("matchConditions", ())}

    assert named == CONDITIONS.keys()
