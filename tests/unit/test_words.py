"""Every text that a user can see, read with docs/words.md: messages, help, causes and catalogue.

Tests of single rooms see the sentences that their cases make; these read the sources, so that none is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remedy import errors
from remedy.yaml_text import parse_yaml
from tests.unit.sentences import AVOIDED

ROOT = Path(__file__).resolve().parents[2]
# Texts that a shell, a parser or another program reads.
_CODE = re.compile(r"\n|\\[bdsw(.]|\(\?[:P=!<]|^\s*[-<{\[#]|\$\(|\[\^|; then|=\{|/\*")


# One of these is in a module in which AVOIDED has a match, but for capitals at a beginning.
_SIGNS = (
    *(
        "the own",
        "told",
        "tells",
        "shall",
        "another one",
        "other ones",
        "ook at",
        "ooks at",
        "ooked at",
        "have a look",
    ),
    *(
        "what became",
        "to blame",
        "no hands",
        "knows nothing",
        "obody knows",
        "goes on with",
        "anew",
    ),
    *(
        "mean harm",
        "means harm",
        "as it should be",
        "please",
        "simply",
        "in vain",
        "(s)",
        "1 hosts",
        "1 runs",
    ),
    *("1 changes", "1 ranks", "1 findings"),
)
_OF_OTHERS = ("pattern", "literals", "examples", "near_misses", "source")


def shown(text: str, *, docstrings: bool) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a module that may be shown, each with its line.

    Args:
        text: of the module.
        docstrings: whether its own is shown, as that of a remedy is.
    """
    tree = ast.parse(text)
    hidden: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            is_help = isinstance(node, ast.FunctionDef) and any(
                ast.unparse(d).endswith((".command()", ".group()")) for d in node.decorator_list
            )
            own = isinstance(node, ast.Module) and docstrings
            if isinstance(first, ast.Expr) and not (is_help or own):
                hidden.add(id(first.value))
            hidden |= {id(n.value) for n in node.body[1:] if isinstance(n, ast.Expr)}
        elif isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "X" for p in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def modules() -> Iterator[Path]:
    for room in ("remedy", "deploys"):
        yield from (
            p for p in sorted((ROOT / room).rglob("*.py")) if "deploys" not in p.parts[-3:-1]
        )
    yield from sorted((ROOT / "deploys").glob("*.py"))


def texts_of(value: Any, key: str = "") -> Iterator[str]:
    """Yield the words of ours in a YAML file: what is neither a pattern, a literal nor an example."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in _OF_OTHERS:
                yield from texts_of(part, str(name))
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part, key)
    elif isinstance(value, str):
        yield value


def test_the_words_that_are_avoided_are_seen() -> None:
    module = (
        '"""A module that shall not count."""\n'
        "def f(x):\n"
        '    """Nor what is told here."""\n'
        '    say(f"{x}: another one is there")\n'
        "@click.command()\n"
        "def g():\n"
        '    """Look at the hosts."""\n'
    )
    hits = [text for _, text in shown(module, docstrings=False) if AVOIDED.search(text)]
    assert sorted(hits) == ["Look at the hosts.", "X: another one is there"]
    assert not AVOIDED.search("which of the two it is cannot be told apart")


def test_every_error_names_the_next_step() -> None:
    classes = [name for name in vars(errors) if name.endswith("Error")]
    raised = re.compile(rf"\b(?:{'|'.join(classes)})\(")
    missing, count = set(), 0
    for path in modules():
        text = path.read_text("utf-8")
        if not raised.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in classes:
                count += 1
                named = any(keyword.arg == "next_step" for keyword in node.keywords)
                missing |= set() if named else {f"{path.relative_to(ROOT)}: {ast.unparse(node)}"}
    assert count > 200
    recorder = "remedy/diagnose/states/recorder.py"
    assert missing == {
        # Whoever said no knows what to do.
        "remedy/cli/consent.py: RefusedError(f'not confirmed; {unchanged}')",
        # Its caller raises both again, with the next step.
        f"{recorder}: UsageError(f'the JSON is broken: {{error}}')",
        f'{recorder}: UsageError("no dump of torch\'s flight recorder: it has no entries")',
    }


def test_no_message_has_a_word_that_docs_avoid() -> None:
    odd, count = {}, 0
    for path in modules():
        text = path.read_text("utf-8")
        name = str(path.relative_to(ROOT))
        count += 1
        if not any(word in text for word in _SIGNS):
            continue  # most files: parsing all of them takes seconds
        is_remedy = path.parent.name == "deploys" and not path.name.startswith("_")
        for line, words in shown(text, docstrings=is_remedy):
            match = AVOIDED.search(words)
            if match and " " in words and (is_remedy or not _CODE.search(words)):
                odd[f"{name}:{line}"] = match[0]
    assert count > 400
    assert odd == {}


@pytest.mark.parametrize(
    "path",
    [ROOT / "remedy/causes.yaml", *sorted((ROOT / "remedy/diagnose/catalogue").glob("*.yaml"))],
    ids=lambda path: path.stem,
)
def test_no_meaning_has_a_word_that_docs_avoid(path: Path) -> None:
    texts = list(texts_of(parse_yaml(path.read_text("utf-8"))))
    assert len(texts) > 5
    assert [text for text in texts if AVOIDED.search(text)] == []


def prose(page: Path) -> str:
    """Return the words of a page without what is quoted: commands, outputs, words of other programs."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"^    .*$|`[^`]*`", "", text, flags=re.M)


@pytest.mark.parametrize(
    "page",
    # docs/words.md has the words itself.
    [p for p in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))) if p.stem != "words"],
    ids=lambda page: page.stem,
)
def test_no_page_has_a_word_that_docs_avoid(page: Path) -> None:
    words = prose(page)
    assert len(words.split()) > 50
    assert [match[0] for match in AVOIDED.finditer(words)] == []


# A number beside a noun in the plural; where it can be 1, it is `counted()`.
_PLURAL = re.compile(
    r"\{len\([^{}]*\)(?:[^{}]*)\} (?:[A-Za-z0-9-]+ )?(?!as\b|is\b|has\b)[a-z-]{2,}s\b"
)


def test_what_can_be_one_is_counted() -> None:
    plurals = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in modules()
        for match in _PLURAL.finditer(path.read_text("utf-8"))
    }
    assert plurals == {
        # None of these is said of one.
        "remedy/cli/lab.py: {len(names)} hosts",
        "remedy/report/pages/map.py: {len(every)} hosts",
        "remedy/report/plan.py: {len(group.specimens)} times",
        "remedy/report/whole.py: {len(alike)} times",
        "remedy/verify/allreduce/checks.py: {len(machines)} boot-ids",
        "remedy/verify/allreduce/divided.py: {len(division.groups)} groups",
        "remedy/verify/facts.py: {len(hosts)} hosts",
        "deploys/hostname.py: {len(names)} hosts",
        "deploys/hostname.py: {len(twins)} hosts",
        "deploys/neighbours.py: {len(names)} hosts",
        "deploys/paddle.py: {len(listed)} endpoints",
    }
