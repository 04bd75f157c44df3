"""Helm for tests, built once from its Go module: renders the chart, and installs it where a test says.

`python -m tests.chart.helm` builds it ahead of the tests: two to four minutes on two cores. GPUBINDER_TEST_HELM names
a helm of your own in its place.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.chart_files import CHART
from tests.cluster.golang import GoBinary, NotBuilt, from_mod

SOURCES = Path(__file__).parent / "helm"
VARIABLE = "GPUBINDER_TEST_HELM"
_MODULE = "helm.sh/helm/v4"
_SECONDS = 600.0


class HelmFailed(Exception):
    """Helm ended with an error; the message is what it said."""


def binary() -> GoBinary:
    """Return how helm is built."""
    version = from_mod(SOURCES, rf"^\s*{_MODULE} v(\S+)")
    return GoBinary(
        name="helm",
        sources=SOURCES,
        files=("go.mod", "go.sum"),
        package=f"{_MODULE}/cmd/helm",
        ldflags=f"-s -w -X {_MODULE}/internal/version.version=v{version}",
        title="helm for tests",
        about=f"Helm {version} (two to four minutes on two cores)",
        packages=1050,
        remedies=f"remedy: set {VARIABLE} to a helm of version 3.14 or later",
    )


def program() -> Path:
    """Return the helm to use. Raises `NotBuilt`."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else binary().built()


def helm(*arguments: str, values: Mapping[str, Any] | None = None, home: Path, kubeconfig: Path | None = None) -> str:
    """Run helm and return what it prints. `values` are given as a file, `home` takes its caches.

    Raises `HelmFailed`.
    """
    argv = [str(program()), *arguments]
    if values is not None:
        file = home / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)))
        argv += ["--values", str(file)]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]} | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    ran = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=_SECONDS, check=False)
    if ran.returncode:
        raise HelmFailed(f"helm {' '.join(arguments)}: {ran.stderr}{ran.stdout}")
    return ran.stdout


def rendered(values: Mapping[str, Any], home: Path, *, namespace: str = "gpubinder-system") -> list[dict[str, Any]]:
    """Return the objects that the chart renders, hooks included. Raises `HelmFailed`."""
    text = helm("template", "gpubinder", str(CHART), "--namespace", namespace, values=values, home=home)
    return [body for body in yaml.safe_load_all(text) if body]


if __name__ == "__main__":
    try:
        sys.stdout.write(f"helm: {program()}\n")
    except NotBuilt as unavailable:
        sys.exit(str(unavailable))
