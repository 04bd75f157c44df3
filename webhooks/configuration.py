"""The MutatingWebhookConfiguration: what reaches us, and nothing beside it (C24, I2).

One object, two webhooks, CREATE only. Both select on the reference label, the one for pods on KubeVirt's
mark of a launcher too, so that an outage blocks starts with GPUs alone. Its name decides when we are called:
`schemas.admission.CONFIGURATION_NAME` says why it is this one.
"""

from base64 import b64encode
from typing import Any

import msgspec

from schemas import names
from schemas.admission import (
    CONFIGURATION,
    CONFIGURATION_NAME,
    CREATE,
    POD_PATH,
    POD_WEBHOOK,
    REVIEW_API_VERSION,
    VMI_PATH,
    VMI_WEBHOOK,
)
from schemas.kinds import POD, VMI, Resource

TIMEOUT_S = 10
"""The API server's patience: above our own, so that it is we who say what went wrong; far below 30 s (C24)."""


class Service(msgspec.Struct, frozen=True):
    """Where the API server finds the webhooks inside the cluster."""

    namespace: str
    name: str
    port: int = 443


def webhook_configuration(at: Service | str, ca_bundle: bytes) -> dict[str, Any]:
    """Return the object, ready to be applied. `at`: the service, or an https URL without a path.

    `ca_bundle`: PEM certificates that the serving certificate is checked against. Raises `ValueError` for
    a URL that the API server would refuse.
    """
    if isinstance(at, str) and not at.startswith("https://"):
        raise ValueError(f"webhooks are called over TLS only: {at} must begin with https://")
    launcher = {names.REFERENCE_LABEL: names.REFERENCE_VALUE, names.KUBEVIRT_LABEL: names.LAUNCHER_VALUE}
    return {
        "apiVersion": CONFIGURATION.api_version,
        "kind": CONFIGURATION.kind,
        "metadata": {"name": CONFIGURATION_NAME, "labels": {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}},
        "webhooks": [
            _mutating(
                VMI_WEBHOOK,
                VMI,
                {names.REFERENCE_LABEL: names.REFERENCE_VALUE},
                client_config(at, VMI_PATH, ca_bundle),
            ),
            _mutating(POD_WEBHOOK, POD, launcher, client_config(at, POD_PATH, ca_bundle)),
        ],
    }


def client_config(at: Service | str, path: str, ca_bundle: bytes) -> dict[str, Any]:
    """Return where the API server calls `path`: of the service, or below the https URL."""
    bundle = b64encode(ca_bundle).decode()
    if isinstance(at, str):
        return {"url": at.rstrip("/") + path, "caBundle": bundle}
    service = {"namespace": at.namespace, "name": at.name, "port": at.port, "path": path}
    return {"service": service, "caBundle": bundle}


def entry(
    name: str,
    resource: Resource,
    client: dict[str, Any],
    *,
    operations: tuple[str, ...] = (CREATE,),
    subresource: str = "",
    version: str = "*",
    fails: str = "Fail",
    timeout_s: int = TIMEOUT_S,
    **more: Any,  # noqa: ANN401 - fields as the API server spells them
) -> dict[str, Any]:
    """Return one webhook of a configuration, complete: what all of ours say, and what this one says beside that.

    `client`: where it is called (`client_config`); `fails`: what an outage does; `more`: selectors and conditions.
    """
    return {
        "name": name,
        "clientConfig": client,
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [version],
                "operations": list(operations),
                "resources": [f"{resource.plural}/{subresource}" if subresource else resource.plural],
                "scope": "Namespaced",
            }
        ],
        **more,
        # A write in another version of the group is converted and asked about too.
        "matchPolicy": "Equivalent",
        "failurePolicy": fails,
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": timeout_s,
        "admissionReviewVersions": [REVIEW_API_VERSION.split("/")[1]],
    }


def _mutating(name: str, resource: Resource, labels: dict[str, str], client: dict[str, Any]) -> dict[str, Any]:
    return entry(
        name,
        resource,
        client,
        version=resource.version,
        objectSelector={"matchLabels": labels},
        # Who changes the object after us may add devices of its own: look again (A7, A10).
        reinvocationPolicy="IfNeeded",
    )
