"""Golden files of the chart: what each way to install it renders, less what is random or stands elsewhere.

`REDRAW=1 .venv/bin/python -m pytest -q tests/chart/test_rendering.py` writes them anew; the reviewer reads the diff.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parent / "golden"
_RANDOM = "gpubinder-nats-users"


class _Dumper(yaml.SafeDumper):
    """Keeps the lines of a text: a configuration is read in a diff."""


def _lines(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _lines)


def golden_text(objects: Sequence[dict[str, Any]]) -> str:
    """Return the objects as text: kinds by name alone, policies too, secrets blanked.

    They stand by kind and name: releases of Helm order the kinds that they do not know differently.
    """
    plain = [_plain(body) for body in sorted(objects, key=_place)]
    return yaml.dump_all(plain, Dumper=_Dumper, sort_keys=False, width=120)


def _place(body: dict[str, Any]) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    kind, metadata = body["kind"], body["metadata"]
    if kind == "CustomResourceDefinition" or kind.startswith("ValidatingAdmissionPolicy"):
        return {"kind": kind, "metadata": metadata, "drawn": "from the code, held by tests/house/test_generated.py"}
    if kind == "PrometheusRule" or metadata["name"] == "gpubinder-dashboards":
        return {"kind": kind, "metadata": metadata, "copied": "from beside the chart"}
    if kind == "Secret" and metadata["name"] == _RANDOM:
        return body | {"data": dict.fromkeys(body["data"], "made by Helm")}
    return body
