"""The settings ConfigMap, from bytes to a view: one object by name, known keys alone."""

import msgspec

from ingest.metadata import Metadata, gone, head
from schemas import names
from schemas.objects import Gone, SettingsView

KNOWN_KEYS = (names.SETTING_ENABLED, names.SETTING_POLICY, names.SETTING_PAUSED, names.SETTING_LICENCES)


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None


_config_map = msgspec.json.Decoder(_ConfigMap)


def read_settings(raw: msgspec.Raw | bytes) -> SettingsView | Gone:
    """Read a ConfigMap of the settings' namespace; all but the one of that name do not matter."""
    found = _config_map.decode(raw)
    if found.metadata.name != names.SETTINGS_CONFIGMAP:
        return gone(found.metadata)
    data = found.data or {}
    return SettingsView(**head(found.metadata), data={key: data[key] for key in KNOWN_KEYS if key in data})
