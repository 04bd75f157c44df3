"""What points somewhere arrives: links between pages, their anchors, and the pages that the program names."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from deploy.watching.drawn import ALERTS
from tests.house.sources import ROOT

PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PAGE = re.compile(r"\b(?:README|docs/[\w./-]+)\.md(?:#[\w-]+)?")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges make them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(base: Path, target: str) -> bool:
    """Say whether a link relative to a folder leads nowhere: no such file, or no such heading in it."""
    path, _, anchor = target.partition("#")
    found = (base / path).resolve()
    return not found.exists() or (bool(anchor) and anchor not in anchors(found))


def _links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(page.read_text("utf-8")):
        if not re.match(r"[a-z]+:", target):
            yield target if not target.startswith("#") else page.name + target


def test_links_of_pages_lead_somewhere() -> None:
    """Each link of a page to a file, and to a heading in it, leads there."""
    lost = [f"{page.relative_to(ROOT)}: {to}" for page in PAGES for to in _links(page) if broken(page.parent, to)]

    assert len(PAGES) > 10
    assert not lost


def test_pages_that_the_program_names_exist() -> None:
    """Whatever a source, the chart, an alert or the Makefile sends its reader to is a page, with that heading."""
    folders = ("schemas", "binder", "ingest", "projector", "webhooks", "deploy")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in {".py", ".yaml", ".txt"}]
    named = {(file, to) for file in (*files, ROOT / "Makefile") for to in _PAGE.findall(file.read_text("utf-8"))}

    assert named
    assert not [f"{file.relative_to(ROOT)}: {to}" for file, to in sorted(named) if broken(ROOT, to)]


def test_each_alert_names_its_own_heading() -> None:
    """Who is called finds what to do under the alert's own name."""
    groups = [group for file in ALERTS.glob("*.yaml") for group in yaml.safe_load(file.read_text("utf-8"))["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]

    assert rules
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert anchor == rule["alert"].lower()
        assert not broken(ROOT, f"{page}#{anchor}")


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    """A file that is missing and a heading that is missing are both found; code is no heading."""
    (tmp_path / "page.md").write_text("# What `holds`, always\n```\n# no heading\n```\n")

    assert not broken(tmp_path, "page.md#what-holds-always")
    assert broken(tmp_path, "page.md#no-heading")
    assert broken(tmp_path, "other.md")
