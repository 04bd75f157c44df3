"""The ValidatingWebhookConfiguration: what is decided on objects as they will be stored, after every mutator (T17).

One object for all our validating webhooks; each of them is described by the module that answers it.
"""

from typing import Any

from schemas import names
from schemas.admission import CONFIGURATION_NAME, VALIDATING_CONFIGURATION


def validating_configuration(webhooks: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Return the object, ready to be applied. `webhooks`: its entries, complete with client configuration."""
    return {
        "apiVersion": VALIDATING_CONFIGURATION.api_version,
        "kind": VALIDATING_CONFIGURATION.kind,
        "metadata": {"name": CONFIGURATION_NAME, "labels": {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}},
        "webhooks": list(webhooks),
    }
