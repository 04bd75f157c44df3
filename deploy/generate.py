"""Writes the files that are drawn from the code: CRDs, templates, alert rules, pages of names and rights."""

from pathlib import Path

import yaml

from deploy.chart_files import chart_copies, chart_files
from deploy.names_page import names_json, names_page
from deploy.rights_page import rights_page
from deploy.watching.drawn import drawn
from schemas.crds import crds

ROOT = Path(__file__).resolve().parents[1]
CRDS = Path(__file__).parent / "crds"
"""Where the CRDs stand, one YAML file each; they ship with the package."""
_HEAD = "# Drawn from schemas/crds.py by `make generate`; edits are lost.\n"


def generated() -> dict[Path, str]:
    """Return what each generated file must hold."""
    files = drawn() | {
        CRDS / f"{crd['metadata']['name']}.yaml": _HEAD + yaml.safe_dump(crd, sort_keys=False, width=120)
        for crd in crds()
    }
    pages = {
        ROOT / "docs" / "names.md": names_page(),
        ROOT / "docs" / "names.json": names_json(),
        ROOT / "docs" / "operating" / "rights.md": rights_page(),
    }
    return chart_copies(files | chart_files() | pages)


def main() -> None:
    """Write the files that are not as they must be."""
    for path, text in generated().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")  # noqa: T201 - a command speaks to its terminal


if __name__ == "__main__":
    main()
