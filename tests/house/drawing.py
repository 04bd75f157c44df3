"""The README map, drawn from the first docstring line of every package and module."""

import ast
import re

from tests.house.sources import ROOMS, ROOT, Source, sources

README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- map: drawn by `make generate` -->\n).*?(<!-- end of map -->)", re.DOTALL)


def _summary(source: Source) -> str:
    return (ast.get_docstring(source.tree) or "").split("\n")[0].removesuffix(".")


def _is_on_the_map(source: Source) -> bool:
    # Of the tests the map shows folders and what stands beside them; single test files name themselves.
    name = source.path.split("/")[-1]
    in_folder_of_tests = source.room == "tests" and source.path.count("/") > 1
    return name != "__init__.py" and not in_folder_of_tests


def _room(room: str) -> str:
    mine = {source.path: source for source in sources() if source.room == room}
    front = _summary(mine[f"{room}/__init__.py"])
    folders = [path for path in mine if path.endswith("/__init__.py") and path.count("/") > 1]
    rows = [
        f"| [`{path.split('/', 1)[1]}`]({path}) | {_summary(mine[path])} |"
        for path in mine
        if _is_on_the_map(mine[path])
    ]
    if room == "tests":
        names = [path.removesuffix("__init__.py") for path in folders]
        rows += [f"| [`{name.split('/', 1)[1]}`]({name}) | {_summary(mine[name + '__init__.py'])} |" for name in names]
    head = f"**[{room}/]({room})** — {front}.\n"
    return head + ("\n| file | what it is for |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else "")


def drawn_map() -> str:
    """Draw the map of all rooms, in the order in which they may import one another."""
    return "\n".join(_room(room) for room in ROOMS)


def readme_with_map(text: str) -> str:
    """Put a fresh map into the README's `text`; ValueError when it has no place for one."""
    if not BLOCK.search(text):
        msg = "README.md: put the two comment lines of the map back: `<!-- map: ... -->` and `<!-- end of map -->`"
        raise ValueError(msg)
    return BLOCK.sub(lambda match: match[1] + "\n" + drawn_map() + "\n" + match[2], text)
