"""The webhook configuration: how little reaches us, and how it is asked."""

from base64 import b64decode

import pytest

from webhooks.configuration import Service, webhook_configuration
from webhooks.service import Patience

AT = Service("cozy-gpubinder", "gpubinder-webhooks")


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
