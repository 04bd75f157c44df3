"""The heart decides the same from the same log: no floats, no order of sets, no identity of objects."""

import ast
import tomllib
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, Source, parse, sources

UNORDERED = frozenset({"set", "frozenset"})
CHANCY_CALLS = {
    "float": "count in integers",
    "hash": "it differs from process to process; use a digest of bytes",
    "id": "it differs from process to process; use the object's name",
    "popitem": "name the key",
}


def _heart() -> list[Source]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = (c for c in project["tool"]["importlinter"]["contracts"] if c["name"] == "The heart is pure")
    names = tuple(name.replace(".", "/") for name in contract["source_modules"])
    return [s for s in sources() if s.path.startswith(tuple(f"{n}/" for n in names) + tuple(f"{n}.py" for n in names))]


def _is_a_set(node: ast.expr) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNORDERED
    return named or isinstance(node, ast.Set | ast.SetComp)


def _complaints(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.comprehension) and _is_a_set(node.iter):
            yield f"{source.path}:{node.iter.lineno}: a set has no order: sort it by a named key first"
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield f"{source.path}:{node.lineno}: floats never decide: count in integers of a smaller unit"
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield f"{source.path}:{node.lineno}: floats never decide: use // or compare products"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            if called in CHANCY_CALLS:
                yield f"{source.path}:{node.lineno}: no {called}() here: {CHANCY_CALLS[called]}"


def test_the_heart_leans_on_nothing_that_differs_between_runs() -> None:
    """No module of the heart uses a float, the order of a set, or an object's identity (T10)."""
    complaints = [complaint for source in _heart() for complaint in _complaints(source)]

    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(
    "offence",
    [
        "for node in {'a', 'b'}:\n    pin(node)\n",
        "pins = [pin(node) for node in set(nodes)]\n",
        "share = 0.5\n",
        "share = free / all\n",
        "share = float(free)\n",
        "first = hash(node)\n",
        "key, value = nodes.popitem()\n",
    ],
)
def test_a_planted_difference_is_seen(offence: str) -> None:
    """Each way to lean on chance is found (T10)."""
    assert len(list(_complaints(parse("binder/planted.py", offence)))) == 1
