"""Remedies and causes in words, and the pages that are made from the same source."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from remedy.causes import NO_HOST_FIX
from remedy.cli.main import COMMANDS, main
from remedy.errors import UsageError
from remedy.plan import all_causes, remedies
from remedy.report import explain
from remedy.yaml_text import parse_yaml

ROOT = Path(__file__).parents[3]
# Remedies that docs/problems.yaml may name before they are there.
MEANT = {
    *("firewall", "port_range", "ipv6", "docker_shm", "sysv_ipc", "shm_leftovers", "orphans"),
    *("environment", "limits", "logind", "ascend", "paddle", "dev_shm"),
}


def problems() -> list[dict[str, Any]]:
    documents = parse_yaml((ROOT / "docs" / "problems.yaml").read_text())
    assert len(documents) == 5
    return [problem for those in documents.values() for problem in those]


def test_the_pages_are_what_the_remedies_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("remedy", remedies(), ids=lambda remedy: remedy.name)
def test_a_remedy_is_told_with_its_causes_and_settings(remedy: Any) -> None:
    text = explain.explain(remedy.name)
    assert explain.plain(remedy.text) in text
    for label in (*remedy.cures, *remedy.finds):
        assert label in text
        assert remedy.name in explain.explain(label)
    for key, default in explain.settings(remedy):
        assert f"{key}: {default}" in text
        assert key in explain.settings_text(remedy), f"what is the setting {key!r} for?"


@pytest.mark.parametrize("name", list(all_causes()))
def test_a_cause_is_told_with_who_deals_with_it(name: str) -> None:
    cause = all_causes()[name]
    text = explain.explain(name)
    assert cause.cause
    assert cause.fix or cause.group == NO_HOST_FIX
    assert any(w in text for w in ("Cured by", "Reported by", "by hand", "Not a host-state"))


def test_without_a_name_everything_is_listed() -> None:
    shown = CliRunner().invoke(main, ["explain"])
    assert shown.exit_code == 0
    for name in (*(remedy.name for remedy in remedies()), *all_causes()):
        assert name in shown.output
    assert max(map(len, shown.output.splitlines())) <= explain.WIDTH


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="hosts_file"):
        explain.explain("hostsfile")
    with pytest.raises(UsageError, match="'gateways' is a setting") as caught:
        explain.explain("gateways")
    assert caught.value.next_step == "remedy explain ssh"
    with pytest.raises(UsageError, match="All names"):
        explain.explain("zzzz")
    assert CliRunner().invoke(main, ["explain", "clock-scew"]).exit_code == 2


def test_every_problem_has_an_answer_or_says_why_not() -> None:
    known = {remedy.name for remedy in remedies()} | set(COMMANDS) | MEANT
    for problem in problems():
        assert set(problem) <= {"problem", "answers", "note", "kind", "tests", "told"}
        assert problem.get("kind", "host") in ("host", "diagnose", "none")
        assert set(problem.get("answers", ())) <= known, problem
        assert problem.get("answers") or problem.get("kind"), problem


@pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem["problem"][:60])
def test_every_answer_is_shown_by_a_test_or_only_told(problem: dict[str, Any]) -> None:
    tests = problem.get("tests", [])
    assert tests or problem.get("told"), "name the tests that show it, or say why it is only named"
    for test in tests:
        path, _, name = test.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {re.escape(name)}\(", text, re.M), f"there is no {test}"
    if problem.get("kind") == "none":
        assert problem.get("told"), "what no host causes is only named"


def test_pages_say_which_answers_are_words_alone() -> None:
    page = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    told = [problem for problem in problems() if problem.get("told")]
    assert page.count("| *only named*: ") == len(told)


def test_a_cause_is_told_with_the_texts_that_speak_for_it() -> None:
    text = explain.explain("hostname-unresolvable")
    assert "IPv6 network addresses of" in text
    assert "remedy diagnose LOG" in text
    assert max(map(len, text.splitlines())) <= explain.WIDTH
    assert "What is printed" not in explain.explain("unknown")


def test_each_remedy_is_in_the_table_of_the_next_boot() -> None:
    page = (ROOT / "docs" / "next-boot.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_0-9]+)`", "\n".join(re.findall(r"(?m)^\| (`.*?) \|", page)))
    names = {remedy.name for remedy in remedies()}
    assert len(named) == len(set(named))
    assert not names - set(named), (
        f"docs/next-boot.md: a row of the table for {', '.join(sorted(names - set(named)))} "
        "says what is right at the next boot, and why"
    )
    assert not set(named) - names, "docs/next-boot.md has rows of remedies that are no more"


def test_each_remedy_that_changes_something_is_in_the_table_of_repairs() -> None:
    page = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    names = {remedy.name for remedy in remedies() if remedy.cures}
    assert len(named) == len(set(named))
    lacking = ", ".join(sorted(names - set(named)))
    assert not lacking, f"docs/repairs.md: a row of the table for {lacking} (what it makes right)"
    assert not set(named) - names, "docs/repairs.md has rows of remedies that change nothing"


def test_a_text_of_a_program_that_is_cut_says_so() -> None:
    causes = [explain.cause_text(cause) for cause in all_causes().values()]
    texts = [
        line
        for text in causes
        for line in text.partition("among others:\n")[2].partition("\n\n")[0].splitlines()
    ]
    full = [line for line in texts if len(line) == explain.WIDTH]
    assert full
    assert len([line for line in full if line.endswith(" ...")]) > len(full) / 2
    assert max(map(len, texts)) <= explain.WIDTH
