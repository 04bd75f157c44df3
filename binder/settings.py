"""The settings ConfigMap, read: an unreadable value keeps its safe default and is named."""

import hashlib
from collections.abc import Mapping

import msgspec

from binder.state import State
from schemas.names import (
    POLICY_REFUSE,
    POLICY_SCHEDULE,
    POLICY_WAIT,
    SETTING_ENABLED,
    SETTING_PAUSED,
    SETTING_POLICY,
)

_encoder = msgspec.json.Encoder(order="sorted")


class Settings(msgspec.Struct, frozen=True):
    """What an operator can set. `problems`: a sentence per value that could not be read."""

    enabled: bool = True
    policy: str = POLICY_WAIT
    paused: bool = False
    problems: tuple[str, ...] = ()


def read_settings(data: Mapping[str, str]) -> Settings:
    """Return the settings that `data` gives."""
    problems: list[str] = []

    def flag(key: str, *, default: bool) -> bool:
        text = data.get(key, "").strip().lower()
        if text in {"", "true", "false"}:
            return default if not text else text == "true"
        problems.append(f"{key}: must be true or false")
        return default

    policy = data.get(SETTING_POLICY, "").strip() or POLICY_WAIT
    if policy not in {POLICY_WAIT, POLICY_REFUSE, POLICY_SCHEDULE}:
        problems.append(f"{SETTING_POLICY}: must be Wait, Refuse or Schedule; Wait is used")
        policy = POLICY_WAIT
    enabled = flag(SETTING_ENABLED, default=True)
    paused = flag(SETTING_PAUSED, default=False)
    return Settings(enabled, policy, paused, tuple(problems))


def settings_of(state: State) -> Settings:
    """Return the settings folded into `state`, the defaults where no ConfigMap was seen."""
    view = state.settings_view()
    return read_settings(view.data if view else {})


def is_paused(state: State, settings: Settings) -> bool:
    """Say whether nothing is placed: by the settings, or by an operator's command."""
    return bool(state.paused) or settings.paused or not settings.enabled


def settings_digest(state: State) -> str:
    """Return the hex SHA-256 of the settings in force: what every frame names (T1, T7)."""
    return hashlib.sha256(_encoder.encode(settings_of(state))).hexdigest()
