"""The one dialect of docstrings (docs/words.md): a public function begins with an imperative."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# First words of a sentence that describes a thing, where one that says what is done is due.
NOUNS = (
    *("Whether", "The", "A", "An", "What", "How", "Which", "Who", "Whom", "Why", "Where"),
    *("All", "Every", "Everything", "Each", "One", "Some", "None", "Seconds", "True", "False"),
)
# A property is read like a field; click prints the docstring of a command; an overload has none of its own.
EXEMPT = ("property", "setter", "command", "group", "overload", "fixture")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """List the modules of both packages, each once: ``remedy/deploys`` is a link to ``deploys``."""
    return sorted(
        path
        for folder in ("remedy", "deploys")
        for path in (ROOT / folder).rglob("*.py")
        if not path.is_relative_to(ROOT / "remedy" / "deploys")
    )


def public_functions(tree: ast.AST) -> Iterator[Function]:
    """Yield the functions and methods that the rule is for."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and not node.name.startswith("_"):
            decorators = [getattr(d, "func", d) for d in node.decorator_list]
            names = {ast.unparse(d).rpartition(".")[2] for d in decorators}
            if not any(name.endswith(EXEMPT) for name in names):
                yield node


def offences(source: str) -> list[str]:
    """Name the functions whose docstring does not begin with an imperative, each with its first line."""
    return [
        f"{node.lineno}: {node.name}: {first}"
        for node in public_functions(ast.parse(source))
        if (text := ast.get_docstring(node))
        for first in text.splitlines()[:1]
        if first.split()[0].strip(",:;.") in NOUNS or " " not in first
    ]


def test_the_first_line_of_a_public_function_is_an_imperative() -> None:
    paths = sources()
    assert len(paths) > 100
    wrong = [
        f"{path.relative_to(ROOT)}:{offence}"
        for path in paths
        for offence in offences(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "first",
    ["Whether it is.", "The name.", "A name.", "What it is called.", "Why not.", "Climb."],
)
def test_a_sentence_that_describes_a_thing_is_found(first: str) -> None:
    assert offences(f'def f():\n    """{first}"""\n') == [f"1: f: {first}"]
    assert offences(f'class C:\n    def f(self):\n        """{first}"""\n') == [f"2: f: {first}"]


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the name."""\n',
        'def f():\n    """Seek the name."""\n',
        'def _f():\n    """The name."""\n',
        'class C:\n    """A thing."""\n    @property\n    def f(self):\n        """The name."""\n',
        'class C:\n    @cached_property\n    def f(self):\n        """The name."""\n',
        '@cli.command("lab")\ndef f():\n    """A lab."""\n',
        "def f(): ...\n",
    ],
)
def test_imperatives_properties_classes_and_commands_pass(source: str) -> None:
    assert offences(source) == []
