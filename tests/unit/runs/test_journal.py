"""Commands that ask hosts about the journal end with the code of what is wrong, or of who is silent."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from remedy.apply.heads import Heads
from remedy.audit import Journal, witness
from remedy.audit.journal import FILE_NAME
from remedy.cli.main import main
from remedy.runs import journal
from remedy.runs.session import Silent
from tests.alone import COOPERATIVE

pytestmark = COOPERATIVE
CHANGES = {"gpu01": ["set the name"], "gpu02": ["set the name"]}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Two hosts that nobody reaches, with a run on record."""
    path = tmp_path / "our hosts.py"
    port = {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_user": "root"}
    hosts = [("gpu01", port), ("gpu02", {**port, "ssh_port": 2})]
    path.write_text(f"hosts = {hosts!r}\n")
    run = Journal(tmp_path / ".remedy", run="r1", mode="apply")
    run.write("planned", by="ann@ops", digest="d", changes=CHANGES)
    run.write("began", hosts=list(CHANGES))
    return path


def remedy(*words: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize(
    "words",
    [("audit", "verify", "--hosts"), ("audit", "accept", "--yes"), ("show", "r1", "--inventory")],
    ids=" ".join,
)
def test_hosts_that_cannot_be_reached_are_code_5(inventory: Path, words: tuple[str, ...]) -> None:
    result = remedy(*words, inventory)
    assert result.exit_code == 5, result.output
    assert "gpu[01-02]" in result.output
    assert result.output.count("refused") == 1, "hosts with one reason are shown together"
    document = json.loads(remedy(*words, inventory, "--json").stdout)
    assert "gpu01" in json.dumps(document)


def test_a_journal_that_is_wrong_counts_more_than_a_host_that_is_silent(inventory: Path) -> None:
    journal = inventory.parent / ".remedy" / "journal.jsonl"
    assert "the chain is whole" in remedy("audit", "verify", inventory, "--hosts").output
    journal.write_text(journal.read_text().replace("ann@ops", "eve@ops"))
    result = remedy("audit", "verify", inventory, "--hosts", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["exit_code"]) == (1, 1)
    assert len(document["problems"]) == 3


def test_what_accepts_nothing_says_so_of_no_host_that_was_not_read(inventory: Path) -> None:
    assert "no host that was read remembers more" not in remedy("audit", "accept", inventory).output


def test_a_run_names_the_inventory_that_it_is_of(inventory: Path) -> None:
    home = inventory.parent / ".remedy"
    assert "--inventory INVENTORY" in remedy("show", "r1", "--home", home).output
    (home / "names.json").write_text(json.dumps({inventory.name: {}}))
    shown = remedy("show", "r1", "--home", home).output
    assert f"--inventory {shlex.quote(str(inventory))}" in shown.replace("\n", "")
    missing = remedy("show", "r9", "--home", home).output
    assert f"remedy history {shlex.quote(str(inventory))}" in missing.replace("\n", " ")
    (home / "names.json").write_text(json.dumps({"../x.py": {}}))
    assert "--inventory INVENTORY" in remedy("show", "r1", "--home", home).output


@pytest.mark.parametrize(
    ("machine", "keeps", "problem", "replaced"),
    [
        ("the first", True, "", False),
        ("the first", False, "left no record on it", False),
        ("another", False, "", True),
        # A machine that was changed itself since it came, and one of which nothing is known.
        ("another", True, "", False),
        ("", False, "left no record on it", False),
    ],
)
def test_a_host_that_was_replaced_keeps_no_records_of_the_one_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    keeps: bool,
    problem: str,
    replaced: bool,
) -> None:
    Journal(tmp_path, run="r1", mode="apply").write("began", hosts=["gpu01"])
    known, place = witness.hashes(tmp_path / FILE_NAME), witness.place(tmp_path)
    runs = ["r1", "r2"] if machine == "another" and keeps else ["r1"]
    heads = Heads(machine, (f"{known[0]} 0 {known[0]} {place} {runs[-1]}",) if keeps else ())
    session: Any = SimpleNamespace(
        home=tmp_path,
        hosts=("gpu01",),
        progress=Silent(),
        carrier=SimpleNamespace(heads=lambda _: {"gpu01": heads}),
        stories=lambda: {
            run: SimpleNamespace(run=run, results={"gpu01": {"c": "done"}}) for run in runs
        },
    )
    of_runs = {"r1": {"gpu01": "the first"}, "r2": {"gpu01": "another"}}
    monkeypatch.setattr(journal, "machines_of", lambda _, story: of_runs[story.run])
    compared = journal.compare_journal(session)
    assert (problem in compared.words["gpu01"]) if problem else not compared.words["gpu01"]
    assert compared.replaced == ({"gpu01": "r1"} if replaced else {})
