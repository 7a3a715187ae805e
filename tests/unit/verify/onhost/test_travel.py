"""What travels to hosts: the standard library of Python 3.8 and its own folder are all that it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remedy.verify.onhost
from remedy.verify.allreduce.engines import ENGINES, Engine
from remedy.verify.packing import AGENT, KNOCK, START

ROOM = "remedy.verify.onhost"
HOME = Path(remedy.verify.onhost.__file__).parent
FILES = sorted(str(path.relative_to(HOME)) for path in HOME.rglob("*.py"))
# What the ranks of an engine prove is that this works, so it is on the hosts; it is imported when a rank runs.
FRAMEWORKS = {
    "engines/torch_rank/main.py": {"torch"},
    "engines/paddle.py": {"paddle"},
    "engines/mindspore.py": {"mindspore", "numpy"},  # MindSpore itself needs numpy
}


def imports(tree: ast.AST, *, in_function: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield each imported module, and whether that is done in a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, in_function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", in_function
        else:
            inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(node, in_function=inside)


def foreign(text: str, frameworks: set[str]) -> list[str]:
    """The modules that a text imports and that need not be on a host, or not when it begins."""
    tree = ast.parse(text, feature_version=(3, 8))
    return [
        name
        for name, late in imports(tree)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not (name == ROOM or name.startswith(f"{ROOM}."))
        and not (late and name.split(".")[0] in frameworks)
    ]


def newer(*paths: Path) -> str:
    """What vermin finds in files that is newer than Python 3.8; "" where there is nothing."""
    command = [sys.executable, "-c", "from vermin import main; main()"]
    done = subprocess.run(
        [*command, "--target=3.8-", "--violations", "--no-tips", *map(str, paths)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Minimum required versions: 3." in done.stdout, done.stdout + done.stderr
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("name", FILES)
def test_it_imports_the_standard_library_and_its_own_folder_alone(name: str) -> None:
    # A script is ASCII, whatever a host's locale is.
    text = (HOME / name).read_text(encoding="ascii")
    assert foreign(text, FRAMEWORKS.get(name, set())) == []


def test_nothing_in_it_is_newer_than_python_38() -> None:
    assert newer(HOME) == ""


@pytest.mark.parametrize("call", [AGENT, KNOCK])
def test_what_unpacks_it_needs_no_more(tmp_path: Path, call: str) -> None:
    """The text around the modules travels, too, and is no file that vermin would see in the folder."""
    start = tmp_path / "start.py"
    start.write_text(START.format(cargo="", config="{}", call=call), encoding="ascii")
    assert foreign(start.read_text(encoding="ascii"), set()) == []
    assert newer(start) == ""


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import pydantic", "pydantic"),
        ("from remedy.values import Record", "remedy.values"),
        ("from remedy.verify import verdict", "remedy.verify"),
        ("import torch", "torch"),  # not late
        ("def f():\n    import jax", "jax"),
    ],
)
def test_a_foreign_import_is_found(line: str, module: str) -> None:
    assert foreign(line, {"torch"}) == [module]
    assert foreign("def f():\n    import torch", {"torch"}) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import math\nmath.lcm(4, 6)", "math.lcm"),
        ("'ab'.removeprefix('a')", "removeprefix"),
        ("import time\ntime.clock_gettime_ns\n{} | {'a': 1}", "3.9"),
    ],
)
def test_a_newer_library_call_is_found(tmp_path: Path, line: str, found: str) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(f"from __future__ import annotations\n{line}\n")
    ast.parse(line, feature_version=(3, 8))  # parsing alone does not see it
    assert found in newer(bad)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_an_engine_brings_all_that_its_files_import(engine: Engine) -> None:
    cargo = set(engine.cargo)
    for name in cargo:
        tree = ast.parse((HOME / f"{name.replace('.', '/')}.py").read_text(encoding="ascii"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM):
                below = str(node.module)[len(ROOM) + 1 :]
                # Either a module, or modules of a package.
                if below not in cargo:
                    parts = {f"{below}.{alias.name}".lstrip(".") for alias in node.names}
                    assert parts <= cargo, name


def test_every_file_of_an_engine_or_a_rank_travels_with_some_engine() -> None:
    carried = {name for engine in ENGINES.values() for name in engine.cargo}
    for folder in ("engines", "engines/torch_rank", "rank"):
        dotted = folder.replace("/", ".")
        names = {f"{dotted}.{path.stem}" for path in (HOME / folder).glob("*.py")}
        assert names - {f"{dotted}.__init__"} <= carried
