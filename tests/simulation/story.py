"""A world told to people: act by act, with what was heard and decided in between, and as a test to paste."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from binder.telling import told_decision, told_event
from schemas.frames import Epoch, Frame, Genesis, decode_record
from schemas.streams import DECISIONS, EVENTS
from tests.simulation.acts.act import Step
from tests.simulation.cluster import Setting
from tests.simulation.world import World

Say = Callable[[str], object]


class Teller:
    """Tells a world as it goes; with `trace`, each input and each decision too."""

    def __init__(self, say: Say, *, trace: bool) -> None:
        self._say = say
        self._trace = trace
        self._decisions = 0
        self._journal: object = None

    def __call__(self, world: World, said: str) -> None:
        """Tell what the log holds by now, and then what happens next."""
        if self._trace:
            self.log(world)
        self._say(f"{world.now:8.2f}  {said}")

    def log(self, world: World) -> None:
        """Tell what the log has come to hold."""
        if self._journal not in {None, world.journal}:
            # Another log: what it has kept of the one before was told.
            said = [decode_record(message.body) for message in world.journal.streams[DECISIONS].messages]
            begun = [place for place, one in enumerate(said) if isinstance(one, Genesis) and one.adopts]
            self._decisions = begun[-1] if begun else len(said)
        self._journal = world.journal
        events = world.journal.streams[EVENTS].messages
        for message in world.journal.streams[DECISIONS].messages[self._decisions :]:
            self._decisions += 1
            record = decode_record(message.body)
            if isinstance(record, Epoch):
                self._say(f"          {message.sequence}  epoch of {record.holder}")
            if isinstance(record, Frame):
                decided = {entry.cause: entry.decisions for entry in record.entries}
                for sequence in range(record.covers_from, record.covers_to + 1):
                    self._say(f"          {sequence}  {told_event(events[sequence - 1].body)}")
                    for decision in decided.get(sequence, ()):
                        self._say(f"          {sequence}    -> {told_decision(decision)}")


def spelled(thing: msgspec.Struct) -> str:
    """Return how a struct is written in Python, without what it says by default."""
    fields = msgspec.structs.fields(thing)
    given = [
        f"{field.name}={_value(getattr(thing, field.name))}"
        for field in fields
        if field.required or getattr(thing, field.name) != field.default
    ]
    return f"{type(thing).__name__}({', '.join(given)})"


def _value(value: object) -> str:
    return spelled(value) if isinstance(value, msgspec.Struct) else repr(value)


def as_test(seed: int, setting: Setting, steps: Sequence[Step], law: str) -> Iterator[str]:
    """Yield the lines of a test that lives this world."""
    yield f"def test_world_{seed}() -> None:"
    yield f'    """Holds {law}: shrunk from the world of seed {seed}."""'
    yield "    steps = ["
    yield from (f"        Step({spelled(step.act)}, {step.wait_s})," for step in steps)
    yield "    ]"
    yield f"    assert lived({seed}, {spelled(setting)}, steps).broken is None"
