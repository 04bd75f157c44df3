"""What keeping a node costs: an input that touches neither node nor VM of it asks of that node alone."""

import pytest

from binder import fairness, placement
from binder.book import Book
from binder.placement import Need, could_take, obstacle
from schemas import decisions as d
from schemas.objects import NodeView
from schemas.reasons import Wait
from tests.stories.language import Story


def crowded(nodes: int) -> Story:
    """Return so many nodes, one of four units free on each, where one that asks for all has a node kept."""
    story = Story()
    story.hear("class l40s")
    for number in range(nodes):
        story.hear(f"node n{number:03} l40s=4 cpu=64")
        story.hear(f"raw r{number:03} n{number:03} l40s=3")
    for name in ("big", "big2", "big3"):
        story.hear(f"start {name} l40s=4")
    story.hear("pass 620")
    return story


def asked(story: Story, line: str, patch: pytest.MonkeyPatch) -> int:
    """Return how many nodes are tested, for anybody, because of a line."""
    count = 0

    def counted(book: Book, need: Need, node: NodeView) -> Wait | None:
        nonlocal count
        count += 1
        return obstacle(book, need, node)

    def counted_too(book: Book, need: Need, node: NodeView) -> bool:
        nonlocal count
        count += 1
        return could_take(book, need, node)

    with patch.context() as planted:
        planted.setattr(placement, "obstacle", counted)
        planted.setattr(fairness, "could_take", counted_too)
        story.hear(line)
    return count


@pytest.mark.parametrize("line", ["tick 5", "raw more n007 cpu=1", "raw r009 n009 l40s=2", "class a16", "progress"])
def test_what_touches_nothing_of_it_costs_nothing_more(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T5: however many nodes there are, and however long others have waited too, as few are looked at."""
    counts = []
    for nodes in (12, 48):
        story = crowded(nodes)
        kept = story.scene.book.state.kept
        assert kept is not None
        assert (kept.vmi.name, kept.node) == ("big", "n000")
        counts.append(asked(story, line, monkeypatch))

    assert counts[0] == counts[1] <= 8


def test_the_next_in_line_is_found_at_one_look() -> None:
    """C55: where the first has its place, the next one that has waited as long has a node kept in the same input."""
    story = crowded(3)
    decided = [one for *_, said in story.scene.log for one in said if isinstance(one, d.NodeKept)]
    assert decided == [d.NodeKept(d.VmiId("t", "big", "uid-big"), "n000")]

    story.hear("gone pod r001")
    kept = [one for one in story.scene.log[-1][3] if isinstance(one, d.NodeKept)]

    assert [(one.vmi.name, one.node) for one in kept] == [("big", ""), ("big2", "n000")]
