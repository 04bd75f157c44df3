"""The lock of what the image holds: the development lock less what only development needs. `make lock` runs it.

Who needs whom is asked of the installed packages, which are those of the development lock: image and tests run the
same versions.
"""

from importlib import metadata
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.sources import ROOT

LOCK: Final = ROOT / "requirements.lock"
DEVELOPMENT: Final = ROOT / "requirements-dev.lock"
_PROJECT: Final = "gpubinder"
_HEAD: Final = """# What runs in the image, pinned: the part of requirements-dev.lock that the program itself needs.
# Made by `make lock`; never edited by hand.
"""


def runtime_lock() -> str:
    """Return what the lock must hold. Raises `LookupError` where the development lock lacks a package."""
    lines = [line for line in DEVELOPMENT.read_text("utf-8").splitlines() if "==" in line]
    pinned = {canonicalize_name(line.split("==")[0]): line for line in lines}
    needed = closure()
    missing = sorted(needed - pinned.keys())
    if missing:
        raise LookupError(f"{DEVELOPMENT.name} lacks {', '.join(missing)}: run `make lock`")
    return _HEAD + "".join(f"{pinned[name]}\n" for name in pinned if name in needed)


def closure() -> set[str]:
    """Return the names of all packages that the program needs here, with the extras that are asked for; itself not."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(_PROJECT)]
    while waiting:
        wanted = waiting.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        for text in metadata.requires(wanted.name) or []:
            needed = Requirement(text)
            extras = [*wanted.extras, ""]
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return {name for name, _ in seen} - {_PROJECT}


def main() -> None:
    """Write the lock."""
    LOCK.write_text(runtime_lock(), "utf-8")


if __name__ == "__main__":
    main()
