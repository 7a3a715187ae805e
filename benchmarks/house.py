"""Measure the house: its size, its functions, and the graph of its imports.

    python -m benchmarks.house [CHECKOUT] [--commands] [--walk]

Prints one Markdown table, of this checkout or of another one. ``--commands`` also times commands of remedy that
talk to no host, with the interpreter that runs this.

``--walk`` runs one verification of a fleet on paper (that of the ladder's unit tests, all green) and notes in
which files of ``remedy.verify`` control is. A stay lasts until control is in another of them, by a call or by
a return; a return is a stay in a file that it has been in before. The same is counted for the rooms of
``remedy.verify``. Loops over hosts count each time, code outside of ``remedy.verify`` does not.

What is counted: the Python of ``remedy/`` and ``deploys/``, without tests and benchmarks. A room is what
stands right below ``remedy``, a package or a module; the same is counted below ``remedy.verify``. An arrow
leads from a room to one that it imports from; imports for the type checker count. The layers are the rooms on
the longest way through the arrows, where a cycle counts as one. A cycle is a set of rooms, or of modules, each
of which can be reached from each other. Times are the least of several rounds: others on the machine only add.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from statistics import median

import grimp
from radon.complexity import cc_visit
from radon.visitors import Function

PACKAGE = "remedy"
LONG = 60
COMPLEX = 20
ROUNDS = 15
COMMANDS = (("--help",), ("explain", "hostname"))

LADDERS = ("tests.unit.verify.test_ladder", "tests.unit.test_verify_ladder")
WALK = """
import importlib, sys
ladder = importlib.import_module(sys.argv[1])
inside, stays = [], []

def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event not in ("call", "return") or not name.startswith("remedy.verify"):
        return
    if event == "call":
        inside.append(name)
    else:
        inside.pop()
    if inside and stays[-1:] != inside[-1:]:
        stays.append(inside[-1])

paper = ladder.Paper()
sys.setprofile(note)
verdict = ladder.go(paper)
sys.setprofile(None)
assert verdict.passed, verdict.reason
rooms = [".".join(name.split(".")[:3]) for name in stays]
rooms = [room for room, before in zip(rooms, ["", *rooms]) if room != before]
for places in (stays, rooms):
    print(len(set(places)), "/", len(places), "/", len(places) - len(set(places)))
"""

Graph = Mapping[str, Set[str]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path.cwd())
    parser.add_argument("--commands", action="store_true", help="time commands, too")
    parser.add_argument("--walk", action="store_true", help="follow one verification, too")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    rows = {**sizes(checkout), **imports(checkout)}
    if arguments.commands:
        rows |= {f"`remedy {' '.join(words)}`": seconds(checkout, words) for words in COMMANDS}
    if arguments.walk:
        places = ("files", "rooms")
        names = (f"{place} / stays / returns of one verification" for place in places)
        rows |= dict(zip(names, walk(checkout), strict=True))
    print("| Measured | |\n| --- | --- |")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def sizes(checkout: Path) -> dict[str, str]:
    """Return what is measured in each file by itself."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in (PACKAGE, "deploys")
        for path in sorted((checkout / folder).rglob("*.py"))
        if (checkout / PACKAGE / "deploys") not in path.parents
    ]
    lines = [text.count("\n") for text in texts]
    functions = [
        node
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    # A class is no function, and its methods are there by themselves.
    scores = [
        block.complexity
        for text in texts
        for block in cc_visit(text)
        if isinstance(block, Function)
    ]
    return {
        "lines": f"{sum(lines):,}",
        "files": f"{len(texts)}",
        "median lines of a file": f"{median(lines):.0f}",
        "longest file": f"{max(lines)}",
        f"functions over {LONG} lines": f"{sum(length > LONG for length in lengths)}",
        f"functions with a complexity over {COMPLEX}": f"{sum(s > COMPLEX for s in scores)}",
        "highest complexity": f"{max(scores)}",
        "lines / files / highest complexity of `deploys`": _deploys(checkout),
    }


def _deploys(checkout: Path) -> str:
    """Return the size of the remedies, with what they share."""
    texts = [
        path.read_text(encoding="utf-8") for path in sorted((checkout / "deploys").glob("*.py"))
    ]
    score = max(b.complexity for text in texts for b in cc_visit(text) if isinstance(b, Function))
    return f"{sum(text.count(chr(10)) for text in texts):,} / {len(texts)} / {score}"


def imports(checkout: Path) -> dict[str, str]:
    """Return what is measured in the graph of imports."""
    sys.path.insert(0, str(checkout))
    graph = grimp.build_graph(PACKAGE, cache_dir=None, exclude_type_checking_imports=False)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    result = {}
    for package in (PACKAGE, f"{PACKAGE}.verify"):
        between = rooms_of(package, modules)
        arrows = sum(map(len, between.values()))
        result[f"rooms / layers / arrows of `{package}`"] = (
            f"{len(between)} / {_layers(between)} / {arrows}"
        )
        result[f"cycles of rooms of `{package}`"] = _named(cycles(between))
    return {**result, "cycles of modules": _named(cycles(modules))}


def rooms_of(package: str, modules: Graph) -> dict[str, set[str]]:
    """Return for each room of a package the other rooms of it that it imports from."""
    depth = package.count(".") + 2
    rooms = {
        name: ".".join(name.split(".")[:depth])
        for name in modules
        if name.startswith(f"{package}.")
    }
    between: dict[str, set[str]] = {room: set() for room in rooms.values()}
    for name, room in rooms.items():
        between[room] |= {rooms[other] for other in modules[name] if other in rooms} - {room}
    return between


def _named(circles: list[list[str]]) -> str:
    if not circles:
        return "0"
    return f"{len(circles)}, of {' and '.join(str(len(members)) for members in circles)}"


def cycles(graph: Graph) -> list[list[str]]:
    """Return each set of more than one name that can all be reached from each other."""
    reached = {name: _reachable(graph, name) for name in graph}
    sets = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(members) for members in sets if len(members) > 1)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        for name in graph[ahead.pop()] - seen:
            seen.add(name)
            ahead.append(name)
    return seen


def _layers(graph: Graph) -> int:
    """Return how many rooms the longest way has; a cycle counts as one."""
    whole = {name: frozenset([name]) for name in graph}
    for members in cycles(graph):
        whole |= {name: frozenset(members) for name in members}

    @cache
    def height(part: frozenset[str]) -> int:
        below = {whole[other] for name in part for other in graph[name]} - {part}
        return 1 + max(map(height, below), default=0)

    return max(height(part) for part in whole.values())


def walk(checkout: Path) -> list[str]:
    """Return for files and for rooms how many a verification enters, in how many stays, and the returns."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    name = next(n for n in LADDERS if (checkout / f"{n.replace('.', '/')}.py").exists())
    program = [sys.executable, "-c", WALK, name]
    done = subprocess.run(
        program, env=environment, cwd=checkout, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def seconds(checkout: Path, words: tuple[str, ...]) -> str:
    """Return the least time of a command, and of its processor; the first round compiles and does not count."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    program = [sys.executable, "-c", "from remedy.cli.main import main; main()", *words]
    walls, processors = [], []
    for _ in range(ROUNDS + 1):
        began, before = time.perf_counter(), os.times()
        subprocess.run(program, env=environment, cwd=checkout, check=True, capture_output=True)
        after = os.times()
        walls.append(time.perf_counter() - began)
        processors.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return f"{min(walls[1:]):.2f} s ({min(processors[1:]):.2f} s of processor)"


if __name__ == "__main__":
    main()
