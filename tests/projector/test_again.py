"""What nobody watches is read again when a server went back, once for each time, and at no other step (T12)."""

from typing_extensions import override

from binder.book import Book
from binder.state import Session, empty_state
from projector.again import Again
from projector.effects import ShowLicence
from projector.paced import Paced
from schemas.objects import ClassView, Stamp
from tests.binder.scene import Scene


class Counted(Paced):
    """Counts that are asked to be read again."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    @override
    def look_again(self) -> None:
        """Count the asking."""
        self.looks += 1


def test_t12_a_step_looks_again_once_for_each_kind_that_went_back() -> None:
    """A session that went back is news once; what a step costs is no matter of how many sessions there are."""
    counts, put = Counted(), list[tuple[str, ShowLicence, Stamp]]()
    again, book = Again((counts,), lambda *said: put.append(said)), Book(empty_state())
    book.store("gpuclasses", "l40s", ClassView("l40s", "u1", "1", "nvidia.com/L40S"))
    looks = []
    for kind, session in (
        ("nodes", Session(1)),
        ("nodes", Session(5, rewound=True)),
        ("nodes", Session(5, rewound=True, synced=True)),
        ("pods", Session(7, rewound=True)),
        ("nodes", Session(9)),
    ):
        book.store_session(kind, session)
        again.take(book)
        looks.append(counts.looks)

    assert looks == [0, 1, 1, 2, 2]
    assert {(effect.name, effect.unsaid, effect.missing) for _, effect, _ in put} == {("l40s", True, False)}


def test_t12_a_snapshot_keeps_what_went_back_last() -> None:
    """A book that is made of a snapshot knows the newest session that went back as one that was there all the time."""
    scene = Scene()
    scene.open("nodes", rewound=True)

    assert scene.book.rewound == scene.sessions["nodes"]
    assert Book(scene.book.state).rewound == scene.book.rewound
