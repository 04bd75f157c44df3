"""The webhook configuration: how little reaches us, and how it is asked."""

from base64 import b64decode

import pytest

from webhooks.configuration import Service, webhook_configuration
from webhooks.registration import configurations
from webhooks.service import Patience
from webhooks.writes import NOT_GOING

AT = Service("cozy-gpubinder", "gpubinder-webhooks")
BUDGETS = "budgets.gpubinder.cozystack.io"
CREATED, WRITTEN = ["CREATE"], ["CREATE", "UPDATE"]


def test_only_starts_with_gpus_reach_us() -> None:
    """CREATE of labelled VMIs, and of labelled pods that KubeVirt marked as launchers: nothing else (C24, I2)."""
    vmis, pods = webhook_configuration(AT, b"ca")["webhooks"]
    reference = {"cozystack.io/gpu-reference": "true"}

    assert vmis["objectSelector"] == {"matchLabels": reference}
    assert pods["objectSelector"] == {"matchLabels": {**reference, "kubevirt.io": "virt-launcher"}}
    assert [
        (rule["apiGroups"], rule["operations"], rule["resources"], rule["scope"])
        for webhook in (vmis, pods)
        for rule in webhook["rules"]
    ] == [
        (["kubevirt.io"], ["CREATE"], ["virtualmachineinstances"], "Namespaced"),
        ([""], ["CREATE"], ["pods"], "Namespaced"),
    ]


def test_how_we_are_asked() -> None:
    """Fail closed, side effects none on a dry run, asked again after others, within 10 s (A10, C24, C25, T19)."""
    for webhook in webhook_configuration(AT, b"ca")["webhooks"]:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["sideEffects"] == "NoneOnDryRun"
        assert webhook["reinvocationPolicy"] == "IfNeeded"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert Patience().answer_s < webhook["timeoutSeconds"] <= 10


RULES = {
    "vmis.gpubinder.cozystack.io": ("kubevirt.io", "virtualmachineinstances", CREATED),
    "pods.gpubinder.cozystack.io": ("", "pods", CREATED),
    "starts.gpubinder.cozystack.io": ("kubevirt.io", "virtualmachineinstances", CREATED),
    "orders.gpubinder.cozystack.io": ("cozystack.io", "gpuclaims", CREATED),
    f"virtualmachines.{BUDGETS}": ("kubevirt.io", "virtualmachines", WRITTEN),
    f"virtualmachineinstances.{BUDGETS}": ("kubevirt.io", "virtualmachineinstances", WRITTEN),
    f"virtualmachineinstancereplicasets.{BUDGETS}": ("kubevirt.io", "virtualmachineinstancereplicasets", WRITTEN),
    f"virtualmachineinstancereplicasets-scale.{BUDGETS}": (
        "kubevirt.io",
        "virtualmachineinstancereplicasets/scale",
        ["UPDATE"],
    ),
    f"virtualmachinepools.{BUDGETS}": ("pool.kubevirt.io", "virtualmachinepools", WRITTEN),
    f"virtualmachinepools-scale.{BUDGETS}": ("pool.kubevirt.io", "virtualmachinepools/scale", ["UPDATE"]),
}


def test_each_webhook_is_asked_what_it_can_answer_and_waited_for_longer_than_it_waits() -> None:
    """T19, T20, C24, C25: all of them; budgets fail open and ask nothing about what goes, the others fail closed.

    Nobody is asked about a deletion or a status. We give up before the API server does, whatever we are asked.
    """
    hooks = [hook for _, body in configurations(AT, b"ca", "gpus") for hook in body["webhooks"]]
    found = {}
    for hook in hooks:
        [rule] = hook["rules"]
        [group], [resource] = rule["apiGroups"], rule["resources"]
        found[hook["name"]] = (group, resource, rule["operations"])
        opens = hook["name"].endswith(BUDGETS)
        ours = Patience().unchecked_s if opens else Patience().answer_s
        assert (hook["failurePolicy"], rule["scope"]) == ("Ignore" if opens else "Fail", "Namespaced")
        assert ours < hook["timeoutSeconds"] <= 10
        assert Patience().evidence_s <= ours
        assert (hook["sideEffects"], hook["matchPolicy"]) == ("NoneOnDryRun", "Equivalent")
        assert hook["admissionReviewVersions"] == ["v1"]
        conditions = {one["name"]: one["expression"] for one in hook.get("matchConditions", ())}
        assert (conditions.get(NOT_GOING) == "!has(object.metadata.deletionTimestamp)") is opens
    assert found == RULES


def test_we_are_called_after_kubevirts_mutator() -> None:
    """Configurations are called in the order of their names: ours sees what KubeVirt added to the VMI."""
    assert webhook_configuration(AT, b"ca")["metadata"]["name"] > "virt-api-mutator"


def test_a_service_or_a_url() -> None:
    """In the cluster a service with the path, elsewhere an https URL; the CA bundle is base64."""
    (inside, _), (outside, _) = (webhook_configuration(at, b"ca")["webhooks"] for at in (AT, "https://127.0.0.1:9443/"))

    assert inside["clientConfig"]["service"] == {
        "namespace": "cozy-gpubinder",
        "name": "gpubinder-webhooks",
        "port": 443,
        "path": "/mutate/vmis",
    }
    assert outside["clientConfig"]["url"] == "https://127.0.0.1:9443/mutate/vmis"
    assert b64decode(outside["clientConfig"]["caBundle"]) == b"ca"
    with pytest.raises(ValueError, match="https://"):
        webhook_configuration("http://127.0.0.1", b"ca")
