"""The form of the house as functions: a source in, complaints out, each `file:line: what to do`."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import TypeGuard

from tests.house.sources import Source

Rule = Callable[[Source], Iterator[str]]

FUNCTION_LINES_MAX = 50
MODULE_LINES_MAX = 300
SUMMARY_WORDS_MIN = 3
BANNED_NAMES = frozenset({"utils", "util", "common", "helpers", "helper", "manager", "misc", "base"})
OUR_WORDS = ("cozystack.io",)
KUBERNETES_WORDS = (".k8s.io", "nvidia.com/", "kubevirt.io", "schedulingGates")
NEVER_RUN = ("pytest.skip", "mark.skip", "mark.skipif", "mark.xfail", "pytest.xfail", "pytest.importorskip")
BROAD = frozenset({"Exception", "BaseException"})


def says_what_it_is(source: Source) -> Iterator[str]:
    """Each module opens with a line worth reading: the map is drawn from it."""
    summary = (ast.get_docstring(source.tree) or "").split("\n")[0]
    if len(summary.split()) < SUMMARY_WORDS_MIN:
        yield f"{source.path}:1: say in the docstring's first line what the module is for; the README map shows it"


def functions_are_short(source: Source) -> Iterator[str]:
    """A function fits on a page."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield (
                    f"{source.path}:{node.lineno}: split {node.name} ({lines} lines) into pieces of at most "
                    f"{FUNCTION_LINES_MAX}: let it decide, and move what it computes out"
                )


def modules_are_short(source: Source) -> Iterator[str]:
    """A module has one subject."""
    lines = len(source.text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield f"{source.path}:{MODULE_LINES_MAX}: split the module ({lines} lines) by subject"


def names_have_a_subject(source: Source) -> Iterator[str]:
    """A file that can't be named has no subject."""
    for part in source.path.removesuffix(".py").split("/"):
        if part in BANNED_NAMES:
            yield f"{source.path}:1: rename {part!r} after what it is about"


def kubernetes_is_spelled_once(source: Source) -> Iterator[str]:
    """Groups, labels, gates and resource names stand in schemas and are imported from there."""
    if source.room in {"schemas", "tests"}:
        return
    # The model world plays the API server and KubeVirt: it speaks their words, but takes ours from schemas.
    words = OUR_WORDS if source.path.startswith("deploy/world/") else OUR_WORDS + KUBERNETES_WORDS
    prose = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            for word in words:
                if word in node.value:
                    yield f"{source.path}:{node.lineno}: give {word!r} a name in schemas and import it"


def _is_broad(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(name is None or (isinstance(name, ast.Name) and name.id in BROAD) for name in names)


def _calls(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name


def nothing_is_swallowed(source: Source) -> Iterator[str]:
    """A failure is answered, recorded or passed on."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            silent = all(isinstance(line, ast.Pass | ast.Continue) for line in node.body)
            if node.type is None or (silent and _is_broad(node.type)):
                yield f"{source.path}:{node.lineno}: name the exception expected here, and answer or log it"
        if _calls(node, "suppress") and any(_is_broad(kind) for kind in node.args):
            yield f"{source.path}:{node.lineno}: suppress the one exception expected here, not every one"


def exceptions_to_tools_have_reasons(source: Source) -> Iterator[str]:
    """`noqa` and `type: ignore` name a code and say why."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        where = f"{source.path}:{token.start[0]}"
        if re.search(r"#\s*noqa\b(?!: [A-Z]+\d+(, [A-Z]+\d+)* - \w)", token.string):
            yield f"{where}: write `# noqa: CODE - why`"
        if re.search(r"#\s*type:\s*ignore\b(?!\[[a-z-, ]+\] +# \w)", token.string):
            yield f"{where}: write `# type: ignore[code]  # why`"


def tests_always_run(source: Source) -> Iterator[str]:
    """A test that is skipped or expected to fail says nothing; one that sleeps says it late."""
    if source.room != "tests":
        return
    is_test = source.path.split("/")[-1].startswith("test_")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith(NEVER_RUN):
            yield f"{source.path}:{node.lineno}: make the test run everywhere, or delete it"
        if is_test and _calls(node, "sleep") and ast.unparse(node.args[0]) != "0":
            yield f"{source.path}:{node.lineno}: wait with a deadline for what the test needs, not for time to pass"


RULES: tuple[Rule, ...] = (
    says_what_it_is,
    functions_are_short,
    modules_are_short,
    names_have_a_subject,
    kubernetes_is_spelled_once,
    nothing_is_swallowed,
    exceptions_to_tools_have_reasons,
    tests_always_run,
)
