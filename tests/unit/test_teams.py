"""docs/teams.md: its lines of jq over documents that remedy writes, and the folder of a group."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from remedy.audit import Journal
from remedy.cli.document import head
from remedy.errors import UnreachableError
from remedy.plan import make_plan
from remedy.report.document import run_document
from remedy.report.facts import facts_body
from remedy.runs import host
from remedy.runs.outcome import RunOutcome
from remedy.verify.verdict import Culprit, Verdict
from tests.unit.build import WHEN
from tests.unit.report.first import first_look

PAGE = (Path(__file__).parents[2] / "docs" / "teams.md").read_text(encoding="utf-8")
GONE = UnreachableError("gpu003: no connection", next_step="Is it up?")


def fleet_document(**more: Any) -> dict[str, Any]:
    """Return the document of a check of two hosts that have changes pending, and one that is not there."""
    fleet = first_look(2)
    plan = make_plan(fleet, WHEN)
    hosts = {name: host.probed(name, plan) for name in fleet.states}
    outcome = RunOutcome(
        "check", "", "inventory.py", {**hosts, "gpu003": host.unread(GONE)}, plan, **more
    )
    return {**head("run"), **run_document(outcome)}


def verified() -> dict[str, Any]:
    dead = Culprit(
        name="gpu01 -> gpu02", hosts=("gpu01", "gpu02"), reason="no answer on port 29500"
    )
    return fleet_document(verdict=Verdict(passed=False, reason="no answer", culprits=(dead,)))


def facts() -> dict[str, Any]:
    return {**head("facts"), **facts_body(first_look(1).states, {"gpu003": GONE}, 5)}


# What is put before jq, by the command in front of it; the others need no hosts and are run as they stand.
DOCUMENTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "remedy check inventory.py --json": fleet_document,
    "remedy plan inventory.py --json": fleet_document,
    "remedy verify inventory.py --json": verified,
    "remedy facts inventory.py --json": facts,
}
# For each line, by the sentence above it, what it prints.
PRINTED = {
    "The hosts that are not right, and how.": r"gpu001 pending\ngpu002 pending\ngpu003 unreachable\n",
    "What is wrong, unknown or worth knowing: host, kind, cause, sentence.": (
        r"(gpu00[12]\t(drift|blocked|unknown|report)\t[a-z-]+\t\S.*\n)+"
    ),
    "How many changes of each remedy.": r'\{("[a-z_]+":\d+,?)+\}\n',
    "What nothing takes back.": r"",
    "For the textfile collector of Prometheus' node_exporter.": (
        r'(remedy_host_ok\{host="gpu00[123]"\} 0\n){3}'
    ),
    "The culprits of a verification.": r"gpu01 -> gpu02: no answer on port 29500\n",
    "The memory of each host, in GiB.": r"gpu001 [1-9]\d*\n",
    "Every run that was not proved, with who ran it.": r"\d{4}-\S+ v1 bob@ops\n",
    "What was not made in the last run.": r"gpu02 01-limits failed\n",
    "Why a command ended before it had a result.": r"nowhere\.py: there is no such inventory file\n\S.*\n",
    "The cause of a failed job, for a script that decides whether to start it again.": (
        r"master-port-in-use\n"
    ),
}


def jq_lines() -> dict[str, str]:
    """Return the lines of the section by the sentence above each."""
    section = PAGE.partition("## jq\n")[2].partition("\n## ")[0]
    block = section.partition("```sh\n")[2].partition("```")[0]
    return dict(re.findall(r"^# (.*)\n(.*)$", block, re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, and the journal of a verification and of an apply."""
    (tmp_path / "inventory.py").write_text("hosts = ['gpu01', 'gpu02']\n")
    (tmp_path / "train.log").write_text(
        "RuntimeError: The server socket has failed to bind to [::]:29500 "
        "(errno: 98 - Address already in use).\n"
    )
    home = tmp_path / ".remedy"
    verify = Journal(home, run="v1", mode="verify")
    verify.write("verified", passed=False, reason="no answer")
    verify.write("ended", exit_code=3, by="bob@ops", hosts={"gpu02": "ok"})
    apply = Journal(home, run="a1", mode="apply")
    apply.write("planned", by="ann@ops", digest="d", changes={"gpu01": ["x"], "gpu02": ["x"]})
    apply.write("began", hosts=["gpu01", "gpu02"])
    results = {
        name: {"results": [{"id": "01-limits", "status": status}]}
        for name, status in (("gpu01", "done"), ("gpu02", "failed"))
    }
    apply.write("changed", hosts=results)
    return tmp_path


def shell(line: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        input=stdin,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_line_of_jq_has_an_expectation() -> None:
    assert jq_lines().keys() == PRINTED.keys()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("sentence", PRINTED)
def test_a_line_of_jq_prints_what_it_says(sentence: str, folder: Path) -> None:
    line = jq_lines()[sentence]
    command, _, rest = line.partition(" | ")
    if command in DOCUMENTS:
        done = shell(rest, folder, json.dumps(DOCUMENTS[command]()))
    else:
        done = shell(line, folder)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(PRINTED[sentence], done.stdout), done.stdout


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_what_nothing_takes_back_is_printed_where_there_is_some(folder: Path) -> None:
    document = fleet_document()
    document["plan"]["changes"][0] |= {"reversible": False}
    rest = jq_lines()["What nothing takes back."].partition(" | ")[2]
    change = document["plan"]["changes"][0]
    assert (
        shell(rest, folder, json.dumps(document)).stdout == f"{change['host']}: {change['title']}\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to a group")
@pytest.mark.parametrize("begun", [False, True], ids=["made", "handed-over"])
def test_the_folder_of_a_group_as_the_page_makes_it(begun: bool, tmp_path: Path) -> None:
    """By its own lines, with a number in place of the group: install and chgrp take one."""
    blocks = re.findall(r"```sh\n((?:install|chgrp).*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    home = tmp_path / ".remedy"
    if begun:
        Journal(home, run="r1", mode="check").write("checked", hosts={})
    done = shell(blocks[int(begun)].replace("gpuadmins", "64100"), tmp_path)
    assert done.returncode == 0, done.stderr
    Journal(home, run="r2", mode="check").write("checked", hosts={})
    for path in (home, *home.iterdir()):
        known = path.stat()
        mode = 0o2770 if path.is_dir() else 0o660
        assert (known.st_gid, stat.S_IMODE(known.st_mode)) == (64_100, mode), path
