"""The house has no circle, its picture is true, its functions fit a screen, and its tests stand alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest
from radon.complexity import cc_visit_ast
from radon.visitors import Function

PACKAGE = "remedy"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(PACKAGE, exclude_type_checking_imports=False)


@dataclass(frozen=True)
class Source:
    """What the rules of this file ask of a module of the house.

    Args:
        classes: the names that it defines.
        names: what ``public_names`` gives.
        calls: the callee of each call, and the names in its first argument (None where it has none).
        blocks: its functions and methods, measured.
    """

    classes: tuple[str, ...]
    names: tuple[str, ...]
    calls: tuple[tuple[str, frozenset[str] | None], ...]
    blocks: tuple[Function, ...]


def source_of(text: str) -> Source:
    """Read a module once for all rules: parsing is most of the work of each, and trees fill the memory."""
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    return Source(
        classes=tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        names=tuple(public_names(nodes)),
        calls=tuple(
            (ast.unparse(node.func), names_in(node.args[0]) if node.args else None)
            for node in nodes
            if isinstance(node, ast.Call)
        ),
        blocks=tuple(block for block in cc_visit_ast(tree) if isinstance(block, Function)),
    )


def names_in(expression: ast.expr) -> frozenset[str]:
    """Return the names that an expression uses."""
    return frozenset(node.id for node in ast.walk(expression) if isinstance(node, ast.Name))


@cache
def house() -> dict[str, Source]:
    """Return the modules of both packages, each once: ``remedy/deploys`` is a link to ``deploys``."""
    paths = [*(ROOT / "remedy").rglob("*.py"), *(ROOT / "deploys").rglob("*.py")]
    return {
        str(path.relative_to(ROOT)): source_of(path.read_text(encoding="utf-8"))
        for path in sorted(paths)
        if not path.is_relative_to(ROOT / "remedy" / "deploys")
    }


def room_of(module: str) -> str:
    """Return the room that a module is in; the package itself has its version and nothing else."""
    return ".".join(module.split(".")[:2])


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Return the names on a circle, the first one at its end again; none where there is no circle."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not circle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    arrows = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert circle(arrows) == []


def test_no_rooms_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    arrows: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            if room_of(imported) != room_of(module):
                arrows.setdefault(room_of(module), set()).add(room_of(imported))
    assert circle(arrows) == []


def test_the_remedies_are_part_of_the_house(graph: grimp.ImportGraph) -> None:
    """``remedy/deploys`` is a link; a graph without it would pass every test of this file."""
    assert "remedy.deploys.hostname" in graph.modules


@pytest.mark.parametrize(("contract", "title"), [("layers", ""), ("diagnose", " of diagnose")])
def test_the_picture_is_the_contract(contract: str, title: str) -> None:
    """docs/architecture.md shows the layers that import-linter checks, in the same order."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = settings.partition(f'id = "{contract}"')[2]
    listed = re.search(r"^layers = (\[.*?^\])", contracts, re.MULTILINE | re.DOTALL)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(rf"<!-- layers{title} -->\n\n((?:    .+\n)+)", page)
    assert listed
    assert picture
    assert [line.strip() for line in picture[1].splitlines()] == ast.literal_eval(listed[1])


def test_every_room_has_a_row(graph: grimp.ImportGraph) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = page.partition("## Rooms")[2].partition("\n## ")[0]
    names = set(re.findall(r"`([a-z_]+)/?`", rooms))
    assert {room.partition(".")[2] for room in map(room_of, graph.modules)} - {""} <= names


def imported_tests(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the test modules that a Python file imports, whole or in part."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # Relative ones begin somewhere below ``tests``: there is nothing else that they could mean.
            begin = [*(["tests"] if node.level else []), *filter(None, [node.module])]
            names += (".".join([*begin, alias.name]) for alias in node.names)
    return [name for name in names if re.search(r"^tests\.(.*\.)?test_\w+", name)]


def owners_of_classes(sources: Mapping[str, Source]) -> dict[str, list[str]]:
    """Return the files that define each class."""
    owners: dict[str, list[str]] = {}
    for path, source in sources.items():
        for name in source.classes:
            owners.setdefault(name, []).append(path)
    return owners


def test_a_class_has_one_owner() -> None:
    """One word for a thing, one thing for a word (docs/words.md)."""
    twin = source_of("class Place: ...\nclass _Line: ...\n")
    both = ["a.py", "b.py"]
    assert owners_of_classes(dict.fromkeys(both, twin)) == {"Place": both, "_Line": both}
    owners = owners_of_classes(house())
    assert len(owners) > 300
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def idle_functions(tree: ast.Module, nodes: Iterable[ast.AST]) -> list[str]:
    """Return the functions of a test module that pytest does not run, and nothing in it names."""
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not (node.name.startswith("test_") or node.decorator_list or node.name in named)
    ]


def imported_and_idle(text: str) -> tuple[list[str], list[str]]:
    """Return what both rules about a file of the tests ask for; it is parsed once."""
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    return imported_tests(nodes), idle_functions(tree, nodes)


@cache
def files_of_tests() -> dict[str, tuple[list[str], list[str]]]:
    """Return for each file of the tests what it imports of others, and its idle functions."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {str(p.relative_to(ROOT)): imported_and_idle(p.read_text("utf-8")) for p in paths}


def test_no_test_lacks_the_name_of_a_test() -> None:
    sample = "def helper(): ...\ndef test_a(): helper()\ndef a_host_is_well(): assert 1\n"
    assert imported_and_idle(sample)[1] == ["a_host_is_well"]
    idle = {
        file: names
        for file, (_, names) in files_of_tests().items()
        if Path(file).name.startswith("test_")
    }
    assert len(idle) > 100
    assert {file: names for file, names in idle.items() if names} == {}


def test_no_test_module_imports_another() -> None:
    """What two of them need is in a bench; so a test can be moved or deleted without a look around."""

    def imported(text: str) -> list[str]:
        return imported_and_idle(text)[0]

    assert imported("from tests.unit.firewall import test_ufw\nimport tests.lab.test_sudo")
    assert imported("from .test_guard import LOCKOUT") == ["tests.test_guard.LOCKOUT"]
    assert imported("from . import test_guard")
    assert not imported("from tests.unit.plans import plan_of\nfrom pytest import test_x")
    found = {file: modules for file, (modules, _) in files_of_tests().items()}
    assert len(found) > 100
    assert {file: modules for file, modules in found.items() if modules} == {}


def functions(folder: str) -> list[tuple[str, Function]]:
    """Return every function of a folder with the file that it is in; methods are among them."""
    return [
        (Path(path).name, block)
        for path, source in house().items()
        if path.startswith(f"{folder}/")
        for block in source.blocks
    ]


@pytest.mark.parametrize(("folder", "most"), [("remedy", 20), ("deploys", 15)])
def test_a_function_fits_a_screen_and_a_head(folder: str, most: int) -> None:
    measured = functions(folder)
    assert len(measured) > 100
    assert [
        f"{file}: {f.name} has {f.complexity} branches"
        for file, f in measured
        if f.complexity > most
    ] == []
    long = [
        f"{file}: {f.name} has {f.endline - f.lineno + 1} lines"
        for file, f in measured
        if f.endline - f.lineno >= 60
    ]
    assert long == []


# What a finding and a change are made of: the workbench alone has the ceremony (docs/writing-a-remedy.md).
_MADE_BY_THE_BENCH = {"Change", "Finding", "FileAction", "CommandAction"}


def made_by_hand(source: Source) -> set[str]:
    """Return what a remedy's file builds that is the workbench's to build."""
    return {callee.rpartition(".")[2] for callee, _ in source.calls} & _MADE_BY_THE_BENCH


def test_no_remedy_builds_a_change_or_a_finding_by_hand() -> None:
    sample = "from remedy import plan\nplan.Change(id='')\nfinding()"
    assert made_by_hand(source_of(sample)) == {"Change"}
    sources = {path: source for path, source in house().items() if path.startswith("deploys/")}
    sources |= {
        str(path.relative_to(ROOT)): source_of(path.read_text("utf-8"))
        for path in (ROOT / "docs" / "examples").glob("*.py")
    }
    assert len(sources) > 50
    by_hand = {path: made_by_hand(source) for path, source in sources.items()}
    assert {path: names for path, names in by_hand.items() if names} == {}


def test_no_file_of_the_house_is_longer_than_four_hundred_lines() -> None:
    folders = ("remedy", "deploys", "tests", "benchmarks")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in paths}
    assert len(lengths) > 700
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


# Digits that str.isdigit() takes and int() does not ended a parser: ask is_number() of remedy.text instead.
# What travels to hosts has the standard library alone; names in /proc are safe; two look at one character.
DIGITS = {
    *("remedy/verify/onhost/procs.py", "remedy/verify/onhost/nccl_ras.py", "remedy/lab/machine.py"),
    *("remedy/firewall/boot/nft_rule.py", "deploys/_ways.py"),
}


def test_text_from_elsewhere_is_a_number_by_one_rule() -> None:
    paths = [*(ROOT / "remedy").rglob("*.py"), *(ROOT / "deploys").rglob("*.py")]
    users = {str(p.relative_to(ROOT)) for p in paths if ".isdigit()" in p.read_text()}
    assert {user for user in users if "remedy/deploys/" not in user} == DIGITS


# What writes to the terminal, beside the console of remedy.cli.terminal, which shows every character.
_WRITES = re.compile(
    r"click\.(?:echo|secho|confirm|prompt|style|pager|edit)|(?<![\w.])print\(|(?<!\w)input\(|"
    r"\bConsole\(|sys\.std(?:out|err)\.write|RichHandler"
)


def here_alone() -> dict[str, Source]:
    """Return the modules that run neither on hosts nor for the lab; of ``deploys`` no folder in it."""
    return {
        path: source
        for path, source in house().items()
        if not ("/onhost/" in path or path.startswith("remedy/lab/"))
        and (path.startswith(f"{PACKAGE}/") or path.count("/") == 1)
    }


def test_one_module_writes_to_the_terminal_beside_the_console() -> None:
    """What runs on hosts writes there; in the text of a program ``print`` is no call of ours."""
    found = {
        path
        for path, source in here_alone().items()
        if any(_WRITES.match(f"{callee}(") for callee, _ in source.calls)
    }
    assert found == {"remedy/cli/plain.py"}


# Where a pattern is no constant: whose it is instead. None is a host's, of which any one may never end.
PATTERNS = {
    "remedy/yaml_text.py": "our own table of plain words of YAML",
    "remedy/answers.py": "the nonce and the words of our own script, escaped",
    "remedy/sentences.py": "a host's name in the inventory, escaped",
    "remedy/diagnose/scanner/translated.py": "our own table of translations, escaped",
    "remedy/diagnose/lines.py": "our own catalogue of symptoms",
    "remedy/diagnose/catalogue/__init__.py": "our own catalogue of symptoms",
    "remedy/transport/slurm/failures.py": "our own table of what Slurm prints",
    "remedy/inventory/selection.py": "what the user types behind --limit",
    "remedy/verify/allreduce/division.py": "what the user types behind --divide",
    "deploys/_places.py": "our own table of files",
    "deploys/shm_leftovers.py": "the user's spec",
}
_COMPILES = re.compile(r"re\.(?:compile|search|match|fullmatch|sub|subn|split|findall|finditer)$")


def test_no_pattern_of_a_host_becomes_a_regular_expression() -> None:
    found = set()
    for path, source in here_alone().items():
        for callee, names in source.calls:
            if names is not None:
                is_ours = all(known.isupper() or known == "re" for known in names)
                compiles = _COMPILES.match(callee) and not is_ours
                found |= {path} if compiles or "fnmatch" in callee else set()
    assert found == PATTERNS.keys()


# The pronouns and participles that docs/words.md names.
_NO_NAMES = {
    *("one", "other", "others", "found", "wanted", "told", "given", "own", "said", "left", "this"),
    *("asked", "kept", "made", "rest", "seen", "taken", "tried"),
}


def public_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names of public functions and classes' fields, and of the parameters of public functions."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            given = node.args
            parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            names += [node.name, *(parameter.arg for parameter in parameters)]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
            names += [field.id for field in fields if isinstance(field, ast.Name)]
    return names


def test_names_that_others_use_are_nouns() -> None:
    sample = (
        "class A:\n    own: int\n\n    def f(self, given, *, x): ...\n\n    def told(self): ...\n"
    )
    assert _NO_NAMES & set(source_of(sample).names) == {"own", "given", "told"}
    names = {path: source.names for path, source in house().items()}
    assert sum(map(len, names.values())) > 5000
    assert {path: odd for path, these in names.items() if (odd := _NO_NAMES & set(these))} == {}
