"""The disk that brings a licence into the guest: what is written onto a VMI, and what is found under its name (L5).

A CD with the copy's files, after the VMI's other disks and without a place in the boot order. KubeVirt's own
defaults were filled in before us and are not again, so that the disk says all that they would.
"""

from typing import Any, Final

import msgspec

from binder.rules.licences import DISK, FOREIGN, VOLUME
from schemas import names
from webhooks.reviews import UNREADABLE, PatchOp, pointer

_MARKS_MAX: Final = 4
_NAME_MAX: Final = 253
_CD: Final = {"bus": "sata", "readonly": True, "tray": "closed"}

Entry = dict[str, msgspec.Raw]


def found(volumes: tuple[Entry, ...], disks: tuple[Entry, ...]) -> tuple[str, ...]:
    """Spell what the VMI has under our name, as `licence_marks` does; of what is not ours nothing is told (T16)."""
    secret = ""
    marks = []
    for volume in volumes:
        if _named_as_ours(volume):
            secret = _secret_of(volume)
            marks.append(f"{VOLUME}={secret or FOREIGN}")
    marks += [f"{DISK}={secret if _plain(disk) == _disk() else FOREIGN}" for disk in disks if _named_as_ours(disk)]
    return tuple(marks[:_MARKS_MAX])


def ops(secret: str, volumes: tuple[Entry, ...] | None, disks: tuple[Entry, ...] | None) -> tuple[PatchOp, ...]:
    """Return the patch that adds the volume and its disk at the end; nothing where they stand, or none is needed.

    An admitted VMI has under our name either nothing or exactly ours. The device list itself must be there.
    """
    if not secret or any(_named_as_ours(volume) for volume in volumes or ()):
        return ()
    return (
        _append(pointer("spec", "volumes"), volumes, volume_of(secret)),
        _append(pointer("spec", "domain", "devices", "disks"), disks, _disk()),
    )


def volume_of(secret: str) -> dict[str, Any]:
    """Return the volume of a copy; a missing copy is waited for by kubelet, so it is not optional."""
    return {
        "name": names.LICENCE_VOLUME,
        "secret": {"secretName": secret, "volumeLabel": names.LICENCE_VOLUME_LABEL},
    }


def _disk() -> dict[str, Any]:
    return {"name": names.LICENCE_VOLUME, "cdrom": _CD}


def _append(path: str, there: tuple[Entry, ...] | None, entry: dict[str, Any]) -> PatchOp:
    return PatchOp(f"{path}/-", entry) if there is not None else PatchOp(path, (entry,))


def _named_as_ours(entry: Entry) -> bool:
    try:
        return msgspec.json.decode(entry.get("name", b'""'), type=str) == names.LICENCE_VOLUME
    except UNREADABLE:
        return False


def _secret_of(volume: Entry) -> str:
    """Return the Secret of a volume that is as we write it, '' for every other."""
    plain = _plain(volume)
    secret = plain.get("secret") if isinstance(plain, dict) else None
    name = secret.get("secretName") if isinstance(secret, dict) else None
    return name if isinstance(name, str) and len(name) <= _NAME_MAX and plain == volume_of(name) else ""


def _plain(entry: Entry) -> object:
    """Return an entry without its nulls: whoever writes an object back may add some."""
    try:
        return _without_nulls({key: msgspec.json.decode(value) for key, value in entry.items()})
    except UNREADABLE:
        return None


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value
