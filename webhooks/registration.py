"""Every object that has the API server call us, for whoever applies them: the program itself, or a chart."""

from typing import Any

from schemas.admission import CONFIGURATION, VALIDATING_CONFIGURATION
from schemas.kinds import Resource
from webhooks.configuration import Service, webhook_configuration
from webhooks.orders import order_webhook
from webhooks.starts import start_webhook
from webhooks.validating import validating_configuration
from webhooks.writes import write_webhooks


def configurations(at: Service | str, ca_bundle: bytes, home: str) -> tuple[tuple[Resource, dict[str, Any]], ...]:
    """Return the objects, each with its kind, in the order to apply them in. Raises `ValueError` for a wrong URL.

    `home`: our namespace. The validating one first: no VMI is marked for a booking that nobody would make.
    """
    return (
        (VALIDATING_CONFIGURATION, validating(at, ca_bundle, home)),
        (CONFIGURATION, webhook_configuration(at, ca_bundle)),
    )


def validating(at: Service | str, ca_bundle: bytes, home: str) -> dict[str, Any]:
    """Return the configuration of all validating webhooks, ready to be applied."""
    entries = (start_webhook(at, ca_bundle), *write_webhooks(at, ca_bundle), order_webhook(at, ca_bundle, home))
    return validating_configuration(entries)
