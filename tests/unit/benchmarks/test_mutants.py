"""The mutants that ``python -m benchmarks.mutants`` makes, draws and tries."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutants.draw import draw, room_of
from benchmarks.mutants.operators import Mutant, mutants_of
from benchmarks.mutants.reach import LineReach
from benchmarks.mutants.table import survivors, table
from benchmarks.mutants.trial import Records, Result

ROOT = Path(__file__).parents[3]
EDIT = ROOT / "remedy" / "edit" / "hosts.py"


def changed(source: str) -> list[str]:
    """Return the mutants of a few lines, each without its spaces and brackets."""
    return [
        mutant.apply(source).strip().replace("(", "").replace(")", "")
        for mutant in mutants_of("x", source)
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", {"a = b <= c", "a = b >= c"}),
        ("a = b in c", {"a = b not in c"}),
        ("a = b and c", {"a = b or c", "a = b", "a = c"}),
        ("a = not b", {"a = b"}),
        ("a = 4", {"a = 5", "a = 3"}),
        ("a = 'word'", {"a = ''"}),
        ("a = b[1:c]", {"a = b[:c]", "a = b[1:]", "a = b[2:c]", "a = b[0:c]"}),
        ("a = b + c", {"a = b - c"}),
        ("a = [b for b in c if b]", {"a = [b for b in c]"}),
        ("a = b if c else d", {"a = b", "a = d"}),
        ("f(a, b, c=d)", {"pass", "fb, a, c=d", "fa, b"}),
        ("raise a", {"pass"}),
        ("a += b", {"pass", "a -= b"}),
        ("while a:\n    break", {"while False:\n    break", "while a:\n    continue"}),
        ("if a:\n    b = c", {"if False:\n    b = c", "if True:\n    b = c"}),
        ("def f(a=True):\n    return a", {"def fa=False:\n    return a", "def fa=True:\n    return None"}),
        ("a = f'{b < c}'", {"a = ''", "a = f'{b <= c}'", "a = f'{b >= c}'"}),
        ("x: int\n'doc'\nimport y\n__all__ = ['a', 'b']\nassert z > 3", set()),
    ],
)  # fmt: skip
def test_each_kind_of_statement_is_changed_in_its_ways(source: str, expected: set[str]) -> None:
    assert set(changed(source)) == expected


def test_every_mutant_of_a_real_module_says_which_lines_change() -> None:
    source = EDIT.read_text()
    mutants = mutants_of("remedy/edit/hosts.py", source)
    assert len(mutants) > 100
    for mutant in mutants:
        assert mutant.before != mutant.after
        assert mutant.line <= source.count("\n", 0, mutant.start) + 1 <= mutant.end
        assert ast.parse(mutant.apply(source))


def test_a_seed_decides_the_sample_and_rooms_bound_it() -> None:
    sample = draw(ROOT, ["edit", "audit"], 30, 1)
    assert sample == draw(ROOT, ["edit", "audit"], 30, 1)
    assert {room_of(mutant.path) for mutant in sample} == {"edit", "audit"}
    assert {mutant.key for mutant in sample} != {
        m.key for m in draw(ROOT, ["edit", "audit"], 30, 2)
    }
    lines = {(m.path, m.start) for m in sample}
    assert len(lines) == len(sample) == 30


def mutant(line: int, *, top: bool = False, operator: str = "text") -> Mutant:
    return Mutant(
        "deploys/a.py", line, line + 1, top, operator, 0, 1, "", f"before {line}", "after"
    )


def test_the_tests_for_a_mutant_are_those_that_reach_it_and_then_quick_ones_of_its_file() -> None:
    reach = LineReach(
        {"t.py::slow": 2.0, "t.py::quick": 0.1, "u.py::a": 0.3, "u.py::b": 0.4, "v.py::other": 0.1},
        ("t.py::fails",),
        {
            "deploys/a.py": {
                "4": ["t.py::slow", "t.py::fails"],
                "5": ["t.py::quick"],
                "9": ["collecting u.py"],
            },
            "deploys/b.py": {"4": ["v.py::other"]},
        },
    )
    assert reach.tests_for(mutant(4)) == ["t.py::quick", "t.py::slow", "u.py::a", "u.py::b"]
    assert reach.tests_for(mutant(6)) == ["t.py::quick", "u.py::a", "u.py::b"]
    assert reach.tests_for(mutant(8)) == ["u.py::a", "u.py::b", "t.py::quick"]
    every = ["t.py::quick", "u.py::a", "u.py::b", "t.py::slow"]
    assert reach.tests_for(mutant(1, top=True)) == every


def test_a_result_holds_while_what_it_depends_on_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "remedy").mkdir()
    product, test = tmp_path / "remedy" / "a.py", tmp_path / "t.py"
    product.write_text("one")
    test.write_text("one")
    file = tmp_path / "results.jsonl"
    first = Records(file, tmp_path, "tree")
    first.add(Result("a", "killed", "t.py::quick"))
    first.add(Result("b", "survived"))
    assert Records(file, tmp_path, "tree").results == first.results
    later = Records(file, tmp_path, "other tests")
    assert (list(later.results), later.killers["a"]) == (["a"], "t.py::quick")
    test.write_text("two")
    assert Records(file, tmp_path, "other tests").results == {}
    test.write_text("one")
    product.write_text("two")
    assert Records(file, tmp_path, "other tests").results == {}


def test_what_is_not_reached_counts_as_survived_and_a_hang_as_killed() -> None:
    tried = [
        (mutant(1), Result("a", "killed")),
        (mutant(2), Result("b", "hung")),
        (mutant(3), Result("c", "survived", tests=4)),
        (mutant(4, operator="comparison"), Result("d", "unreached")),
    ]
    assert "| deploys | 4 | 2 | 2 | 1 | 50.0 % |\n| all | 4 | 2 | 2 | 1 | 50.0 % |" in table(tried)
    listed = "".join(survivors(tried))
    assert "deploys/a.py:3 text (survived, 4 tests)\n  - before 3\n  + after" in listed
    assert "deploys/a.py:1" not in listed
