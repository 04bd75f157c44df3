"""The form of the house is kept: short modules, names with a subject, Kubernetes spelled once."""

import re

import pytest

from tests.house.rules import RULES, Rule
from tests.house.sources import parse, sources

LONG_FUNCTION = '"""A page about pins."""\n\n\ndef pin() -> None:\n' + "    go()\n" * 50
WORD = "example.k8s.io"

OFFENCES = {
    "says_what_it_is": ("binder/pins.py", '"""Pins."""\n'),
    "functions_are_short": ("binder/pins.py", LONG_FUNCTION),
    "modules_are_short": ("binder/pins.py", "\n" * 301),
    "names_have_a_subject": ("binder/utils/pins.py", ""),
    "kubernetes_is_spelled_once": ("binder/pins.py", f'GROUP = "{WORD}/v1"\n'),
    "nothing_is_swallowed": ("binder/pins.py", "try:\n    go()\nexcept (OSError, Exception):\n    pass\n"),
    "exceptions_to_tools_have_reasons": ("binder/pins.py", "go()  # noqa: E501\n"),
    "tests_always_run": ("tests/test_pins.py", "import time\n\ntime.sleep(2)\n"),
}

INNOCENT = (
    ("binder/pins.py", f'"""How pins hold to {WORD}."""\n\n\ndef pin() -> None:\n    """Hold {WORD}."""\n'),
    ("deploy/world/pods.py", f'"""Pods of the model world."""\n\nGROUP = "{WORD}"\n'),
    ("schemas/names.py", f'"""Every name, spelled once."""\n\nGROUP = "{WORD}"\n'),
    ("binder/pins.py", '"""How pins are held."""\n\ntry:\n    go()\nexcept KeyError:\n    pass\n'),
    (
        "binder/pins.py",
        '"""How pins are held."""\n\ngo()  # noqa: E501, S101 - read here\ngo()  # type: ignore[arg-type]  # x\n',
    ),
    ("tests/test_pins.py", '"""Pins hold in tests."""\n\nimport asyncio\n\nasyncio.sleep(0)\n'),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    """No file of the house breaks the rule; a complaint says where and what to do."""
    complaints = [complaint for source in sources() for complaint in rule(source)]

    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rule_sees_an_offence(rule: Rule) -> None:
    """A planted offence is found, and the complaint names file and line."""
    complaints = list(rule(parse(*OFFENCES[rule.__name__])))

    assert len(complaints) == 1
    assert re.match(r"[\w/]+\.py:\d+: \w", complaints[0])


@pytest.mark.parametrize(("path", "text"), INNOCENT)
def test_what_is_allowed_is_not_complained_of(path: str, text: str) -> None:
    """Docstrings may speak of Kubernetes, schemas may spell it, a named exception may be passed over."""
    source = parse(path, text)

    assert [complaint for rule in RULES for complaint in rule(source)] == []
