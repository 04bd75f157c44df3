"""Taints, selectors, affinity: rows as Kubernetes documents them, and every combination beside an oracle."""

from itertools import product

import pytest

from binder.rules.serving import every_class_tolerates, selector_accepts, terms_accept, tolerates
from schemas.objects import NodeSelectorTerm, NodeView, Requirement, Taint, Toleration
from tests.binder import oracle

NO_SCHEDULE, NO_EXECUTE, PREFER = "NoSchedule", "NoExecute", "PreferNoSchedule"
GPU = Taint("gpu", "l40s", NO_SCHEDULE)


def node(*taints: Taint, name: str = "n1", **labels: str) -> NodeView:
    """Return a node with these taints and labels."""
    return NodeView(name, "u", "1", labels=labels, taints=taints)


@pytest.mark.parametrize(
    ("toleration", "taint", "covers"),
    [
        (Toleration("gpu", "Equal", "l40s", NO_SCHEDULE), GPU, True),
        (Toleration("gpu", "", "l40s", NO_SCHEDULE), GPU, True),  # an empty operator is Equal
        (Toleration("gpu", "Equal", "h100", NO_SCHEDULE), GPU, False),
        (Toleration("gpu", "Equal", "", NO_SCHEDULE), GPU, False),
        (Toleration("gpu", "Exists"), GPU, True),  # an empty effect is every effect
        (Toleration("gpu", "Exists", "", NO_EXECUTE), GPU, False),
        (Toleration("other", "Exists"), GPU, False),
        (Toleration("", "Exists"), GPU, True),  # an empty key with Exists is every key
        (Toleration("", "Exists", "", NO_SCHEDULE), GPU, True),
        (Toleration("", "Exists", "", NO_SCHEDULE), Taint("x", "1", NO_EXECUTE), False),  # the effect still counts
        (Toleration("", "Equal", "l40s", NO_SCHEDULE), GPU, False),  # an empty key is valid with Exists alone
        (Toleration("", ""), Taint("gpu", "", NO_SCHEDULE), False),
        (Toleration("gpu", "Exists", "", NO_EXECUTE, 30), Taint("gpu", "l40s", NO_EXECUTE), True),
        (Toleration("gpu", "Sometimes", "l40s", NO_SCHEDULE), GPU, False),
    ],
)
def test_a_toleration_covers_a_taint_as_kubernetes_says(toleration: Toleration, taint: Taint, covers: bool) -> None:
    """C19: keys, values, effects and operators match as the API documents them."""
    assert tolerates([toleration], taint) is covers
    assert oracle.tolerates(toleration, taint) is covers


def test_every_toleration_against_every_taint() -> None:
    """C19: all combinations of key, operator, value and effect agree with the oracle."""
    tolerations = [
        Toleration(*parts)
        for parts in product(
            ("", "a", "b"), ("", "Equal", "Exists", "?"), ("", "x", "y"), ("", NO_SCHEDULE, NO_EXECUTE, PREFER)
        )
    ]
    taints = [Taint(*parts) for parts in product(("a", "b"), ("", "x"), (NO_SCHEDULE, NO_EXECUTE, PREFER))]
    for toleration, taint in product(tolerations, taints):
        assert tolerates([toleration], taint) is oracle.tolerates(toleration, taint), (toleration, taint)


def test_each_class_on_its_own_covers_each_hard_taint() -> None:
    """C19: any two classes, any two taints: an intersection over classes, a union within one; soft ones are free."""
    tolerations = [
        (),
        *((Toleration(*parts),) for parts in product(("", "a", "b"), ("Exists",), ("",), ("", NO_SCHEDULE))),
    ]
    tolerations.append((Toleration("a", "Exists"), Toleration("b", "Exists")))
    taints = [Taint(*parts) for parts in product(("a", "b"), ("x",), (NO_SCHEDULE, NO_EXECUTE, PREFER))]
    for one, other in product(tolerations, repeat=2):
        for pair in product(taints, repeat=2):
            hard = [taint for taint in pair if taint.effect != PREFER]
            expected = all(any(oracle.tolerates(t, taint) for t in each) for each in (one, other) for taint in hard)
            assert every_class_tolerates((one, other), node(*pair)) is expected, (one, other, pair)


def test_a_node_without_taints_serves_classes_without_tolerations() -> None:
    """C19: nothing to tolerate, nothing needed; no class at all is not stopped by a taint either."""
    assert every_class_tolerates([()], node())
    assert every_class_tolerates([], node(GPU))
    assert not every_class_tolerates([()], node(GPU))


@pytest.mark.parametrize(
    ("need", "value", "holds"),
    [
        (Requirement("k", "In", ("a", "b")), "b", True),
        (Requirement("k", "In", ("a", "b")), "c", False),
        (Requirement("k", "In", ("a",)), None, False),
        (Requirement("k", "In"), "a", False),
        (Requirement("k", "NotIn", ("a",)), "b", True),
        (Requirement("k", "NotIn", ("a",)), "a", False),
        (Requirement("k", "NotIn", ("a",)), None, True),  # also where the key is missing
        (Requirement("k", "Exists"), "", True),
        (Requirement("k", "Exists"), None, False),
        (Requirement("k", "DoesNotExist"), None, True),
        (Requirement("k", "DoesNotExist"), "", False),
        (Requirement("k", "Gt", ("5",)), "6", True),
        (Requirement("k", "Gt", ("5",)), "5", False),
        (Requirement("k", "Gt", ("5",)), "10", True),  # as numbers, not as text
        (Requirement("k", "Lt", ("5",)), "-1", True),
        (Requirement("k", "Lt", ("5",)), "5", False),
        (Requirement("k", "Gt", ("5",)), "much", False),
        (Requirement("k", "Gt", ("5",)), "1_000", False),  # Python's numbers are not Kubernetes'
        (Requirement("k", "Gt", ("5",)), " 7", False),
        (Requirement("k", "Gt", ("5",)), "\u0667", False),
        (Requirement("k", "Gt", ("5",)), "+7", True),
        (Requirement("k", "Gt", ("5",)), "9223372036854775808", False),  # beyond 64 bits
        (Requirement("k", "Gt", ("much",)), "5", False),
        (Requirement("k", "Gt", ("1", "2")), "5", False),
        (Requirement("k", "Lt", ("5",)), None, False),
        (Requirement("k", "Near", ("5",)), "5", False),
    ],
)
def test_a_requirement_holds_as_kubernetes_says(need: Requirement, value: str | None, holds: bool) -> None:
    """D4: each operator, with a label that is there and one that is not."""
    labels = {} if value is None else {"k": value}

    assert terms_accept((NodeSelectorTerm((need,)),), node(**labels)) is holds
    assert oracle.requirement_holds(need, value) is holds


def test_every_pair_of_requirements_in_one_term_and_in_two() -> None:
    """D4, C42: within a term all must hold, of the terms one; over all pairs of operators and labels."""
    needs = [
        Requirement("k", operator, values)
        for operator, values in product(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), (("3",), ("3", "5"), ()))
    ]
    nodes = [node(), *(node(k=value) for value in ("1", "3", "4", "5", "x"))]
    for one, other in product(needs, repeat=2):
        together, apart = (NodeSelectorTerm((one, other)),), (NodeSelectorTerm((one,)), NodeSelectorTerm((other,)))
        for view in nodes:
            assert terms_accept(together, view) is oracle.terms_hold(together, view)
            assert terms_accept(apart, view) is oracle.terms_hold(apart, view)


def test_no_terms_is_no_restriction_and_an_empty_one_matches_nothing() -> None:
    """D4: None restricts nothing; an empty list and an empty term match no node."""
    assert terms_accept(None, node())
    assert not terms_accept((), node())
    assert not terms_accept((NodeSelectorTerm(),), node(k="a"))
    assert terms_accept((NodeSelectorTerm(), NodeSelectorTerm((Requirement("k", "Exists"),))), node(k="a"))


def test_fields_are_the_name_and_labels_are_not() -> None:
    """C18: matchFields compares the node's name, matchExpressions a label, even one that looks like a name."""
    by_name = (NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", ("n1",)),)),)
    by_label = (NodeSelectorTerm((Requirement("kubernetes.io/hostname", "In", ("n1",)),)),)
    other = NodeView("n2", "u", "1", labels={"kubernetes.io/hostname": "n1", "metadata.name": "n1"})

    assert terms_accept(by_name, node())
    assert not terms_accept(by_name, other)
    assert terms_accept(by_label, other)
    assert not terms_accept(by_label, node())
    assert not terms_accept((NodeSelectorTerm(match_fields=(Requirement("spec.other", "Exists"),)),), node())


def test_a_selector_wants_each_of_its_labels() -> None:
    """D4: every label with its value; no selector wants nothing."""
    assert selector_accepts({}, node())
    assert selector_accepts({"a": "1", "b": "2"}, node(a="1", b="2", c="3"))
    assert not selector_accepts({"a": "1", "b": "2"}, node(a="1"))
    assert not selector_accepts({"a": ""}, node())
    assert selector_accepts({"a": ""}, node(a=""))
