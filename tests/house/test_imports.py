"""Imports go one way, the heart is pure, each outside library has one door."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.sources import ROOMS, ROOT, sources


def _contracts() -> dict[str, dict[str, list[str]]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {contract["name"]: contract for contract in project["tool"]["importlinter"]["contracts"]}


def _lint_imports(root: Path) -> tuple[int, str]:
    command: list[str | Path] = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    path = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"}
    result = subprocess.run(command, cwd=root, env=path, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def test_the_contracts_are_kept() -> None:
    """import-linter finds every contract of pyproject.toml kept."""
    code, report = _lint_imports(ROOT)

    assert code == 0, report


@pytest.mark.parametrize(
    ("planted", "line", "broken"),
    [
        ("binder/planted.py", "import deploy", "One way"),
        ("ingest/planted.py", "import projector", "One way"),
        ("schemas/names.py", "import datetime", "The heart is pure"),
        ("schemas/names.py", "import binder.journal", "The heart knows nothing of the shell"),
        ("schemas/names.py", "import yaml", "The vocabulary leans on msgspec alone"),
        ("ingest/planted.py", "import nats", "NATS has one door"),
        ("webhooks/planted.py", "from kubernetes_asyncio import config", "The Kubernetes client has one door"),
        ("deploy/planted.py", "from aiohttp import web", "aiohttp serves in webhooks.server alone"),
    ],
)
def test_a_planted_import_breaks_its_contract(tmp_path: Path, planted: str, line: str, broken: str) -> None:
    """Each contract is broken by the import that it forbids."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / planted).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")

    code, report = _lint_imports(tmp_path)

    assert code == 1
    assert any(row.startswith(broken) and "BROKEN" in row for row in report.splitlines()), report


def test_every_module_of_binder_is_heart_or_shell() -> None:
    """A new module of binder is declared: pure, or of the shell."""
    contracts = _contracts()
    heart = set(contracts["The heart is pure"]["source_modules"])
    shell = set(contracts["The heart knows nothing of the shell"]["forbidden_modules"])
    modules = {
        source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for source in sources()
        if source.room == "binder"
    }
    undeclared = [
        name for name in sorted(modules - {"binder"}) if not (heart | shell) & {name, name.rpartition(".")[0]}
    ]

    assert not undeclared, (
        f"pyproject.toml: name {undeclared} in 'The heart is pure' or in '... knows nothing of the shell'"
    )
    assert not heart & shell
    assert heart == set(contracts["The heart knows nothing of the shell"]["source_modules"])
