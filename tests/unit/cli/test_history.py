"""``history`` with its filters, and what ``latest`` means."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.audit import Journal, Story, read_stories
from remedy.audit.journal import FILE_NAME
from remedy.audit.latest import latest, to_resume, to_take_back, to_unlock
from remedy.cli.main import main
from remedy.errors import UsageError

CHANGES = {"gpu01": ["set the name"]}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """An inventory with three runs: an apply that is proved, a verification that is not, and a check."""
    home = tmp_path / ".remedy"
    apply = Journal(home, run="a1", mode="apply")
    apply.write("planned", by="ann@ops", digest="d", changes=CHANGES)
    apply.write("began", hosts=["gpu01"])
    apply.write("verified", passed=True, reason="the sum is exact")
    apply.write("ended", exit_code=0, hosts={"gpu01": "changed"})
    verify = Journal(home, run="v1", mode="verify")
    verify.write("verified", passed=False, reason="no answer")
    verify.write("ended", exit_code=3, hosts={"gpu02": "ok"})
    Journal(home, run="c1", mode="check").write("checked", hosts={"gpu01": "ok"}, exit_code=0)
    path = tmp_path / "inventory.py"
    path.write_text("")
    return path


def listed(inventory: Path, *options: str) -> list[str]:
    result = CliRunner().invoke(main, ["history", str(inventory), *options])
    assert result.exit_code == 0, result.output
    return [line.split()[0] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ((), ["a1", "v1", "c1"]),
        (("-n", "2"), ["v1", "c1"]),
        (("-n", "9"), ["a1", "v1", "c1"]),
        (("--command", "apply", "--command", "check"), ["a1", "c1"]),
        (("--verdict", "proved"), ["a1"]),
        (("--verdict", "not-proved"), ["v1"]),
        (("--verdict", "none"), ["c1"]),
        (("--host", "gpu01", "-n", "1"), ["c1"]),
        (("--host", "gpu02"), ["v1"]),
        (("--since", "2026-01-31"), ["a1", "v1", "c1"]),
        (("--since", "9999-01-01"), ["no"]),
        (("--until", "2020-01-01"), ["no"]),
    ],
)
def test_history_lists_the_runs_that_fit(
    inventory: Path, options: tuple[str, ...], runs: list[str]
) -> None:
    assert listed(inventory, *options) == runs


def test_what_ends_with_one_record_has_ended_and_has_somebody(inventory: Path) -> None:
    home = inventory.parent / ".remedy"
    Journal(home, run="n1", mode="accept").write("accepted", by="bob@ops", hosts={"gpu01": "more"})
    Journal(home, run="n2", mode="settle").write("settled", by="eve@ops", hosts={"gpu01": "gone"})
    for mode, words in (("accept", ["accepted", "bob@ops"]), ("settle", ["settled", "eve@ops"])):
        result = CliRunner().invoke(main, ["history", str(inventory), "--command", mode])
        assert result.output.split()[-2:] == words
        shown = CliRunner().invoke(main, ["show", result.output.split()[0], "--home", str(home)])
        assert "not ended" not in shown.output
        assert words[1] in shown.output


def test_show_latest_is_the_newest_run(inventory: Path) -> None:
    home = str(inventory.parent / ".remedy")
    result = CliRunner().invoke(main, ["show", "latest", "--home", home])
    assert result.output.startswith("run c1: check"), result.output
    asked = CliRunner().invoke(main, ["show", "latest", "--inventory", str(inventory)])
    assert asked.exit_code == 0, asked.output
    assert "a check changes no host, so no host has a receipt of it" in asked.stderr
    assert "Asking" not in asked.stderr


def test_runs_and_fleets_have_pages(inventory: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    assert listed(inventory, "--command", "apply", "--html", str(page)) == ["a1"]
    text = page.read_text()
    assert "1 run, last proved" in text
    assert "ann@ops" in text
    assert "v1" not in text, "the page has the runs that are listed"
    home = str(inventory.parent / ".remedy")
    page = tmp_path / "run.html"
    done = CliRunner().invoke(main, ["show", "a1", "--home", home, "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert "run a1: " in page.read_text()
    assert "the sum is exact" in page.read_text()
    assert done.stderr.splitlines()[-1] == f"page        {page}"
    words = ["show", "a1", "--home", home, "--html", "/dev/full", "--json"]
    refused = CliRunner().invoke(main, words)
    assert "page        " not in refused.stderr


@pytest.mark.parametrize("run", ["latest", "a1"])
def test_from_a_different_folder_the_home_is_named_and_how_to_name_another(
    inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    (empty := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(empty)
    refused = CliRunner().invoke(main, ["show", run, "--json"])
    document = json.loads(refused.stdout)
    assert refused.exit_code == 2
    assert str(empty / ".remedy") in document["error"]
    assert "--home FOLDER/.remedy" in document["next_step"]
    assert "INVENTORY" in document["next_step"]
    for home in (inventory.parent / ".remedy", inventory.parent):
        shown = CliRunner().invoke(main, ["show", run, "--home", str(home), "--json"])
        assert json.loads(shown.stdout)["run"] == ("a1" if run == "a1" else "c1"), shown.output


def test_an_inventory_that_is_not_here_is_missed_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(CliRunner().invoke(main, ["history", "inv.py", "--json"]).stdout)
    assert document["error"] == f"inv.py: no such inventory in {tmp_path}"


def test_the_latest_apply_is_taken_back_once(inventory: Path) -> None:
    home = inventory.parent / ".remedy"

    def read() -> list[Story]:
        return [*read_stories(home / FILE_NAME).values()]

    assert to_take_back(read(), home).run == to_resume(read(), home).run == "a1"
    back = Journal(home, run="b1", mode="rollback")
    back.write("planned", by="ann@ops", of="a1", digest="e", changes=CHANGES)
    assert to_take_back(read(), home).run == "a1", "nobody consented: it came to no host"
    back.write("began", hosts=["gpu01"])
    with pytest.raises(UsageError, match="run a1 was taken back already, by run b1") as error:
        to_take_back(read(), home)
    assert "remedy rollback b1" in error.value.next_step
    part = Journal(home, run="b2", mode="rollback")
    part.write("planned", by="ann@ops", of="a1", digest="g", changes=CHANGES, only=["limits"])
    part.write("began", hosts=["gpu01"])
    with pytest.raises(UsageError, match="by run b1"):
        to_take_back(read(), home)
    later = Journal(home, run="a2", mode="apply")
    later.write("planned", by="ann@ops", digest="f", changes=CHANGES)
    assert to_resume(read(), home).run == "a2"
    assert to_unlock(read(), home).run == "b2", "a2 came to no host, so it holds no lock"
    later.write("began", hosts=["gpu01"])
    assert to_take_back(read(), home).run == to_unlock(read(), home).run == "a2"
    for status, run in (("already", "b1"), ("done", "a2")):
        results = [{"id": "01-hostname", "status": status}]
        later.write("changed", hosts={"gpu01": {"refused": "", "results": results, "reverted": ""}})
        if run == "a2":
            assert to_take_back(read(), home).run == run
        else:  # nothing of a2 is to be taken back: a1 is the last that changed a host
            with pytest.raises(UsageError, match=f"run a1 was taken back already, by run {run}"):
                to_take_back(read(), home)


def test_without_an_apply_nothing_is_taken_back_or_resumed() -> None:
    home = Path("/srv/.remedy")
    with pytest.raises(
        UsageError, match=r"no apply that changed hosts is on record in /srv/\.remedy"
    ):
        to_take_back([], home)
    with pytest.raises(UsageError, match=r"no apply with changes is on record in /srv/\.remedy"):
        to_resume([], home)
    with pytest.raises(UsageError, match=r"no run that locks hosts is on record in /srv/\.remedy"):
        to_unlock([], home)
    with pytest.raises(UsageError, match=re.escape("latest: no run is on record in /srv/.remedy")):
        latest([], "no run", lambda _: True, home)


def test_what_was_taken_back_in_part_is_still_the_latest(inventory: Path) -> None:
    home = inventory.parent / ".remedy"
    part = Journal(home, run="b2", mode="rollback")
    part.write("planned", by="ann@ops", of="a1", digest="g", changes=CHANGES, skip=["limits"])
    part.write("began", hosts=["gpu01"])
    assert to_take_back(read_stories(home / FILE_NAME).values(), home).run == "a1"
    line = CliRunner().invoke(main, ["history", str(inventory), "-n", "1"]).output.strip()
    assert line.endswith("(of a1, --skip limits)")
    shown = CliRunner().invoke(main, ["show", "b2", "--home", str(home)])
    assert "not all remedies: --skip limits" in shown.output
    document = CliRunner().invoke(main, ["show", "b2", "--home", str(home), "--json"]).stdout
    assert (json.loads(document)["only"], json.loads(document)["skip"]) == ([], ["limits"])


def test_unlock_takes_the_latest_for_a_run_and_not_for_a_name(inventory: Path) -> None:
    inventory.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n')
    result = CliRunner().invoke(main, ["unlock", "latest", str(inventory)])
    assert (result.exit_code, "latest: a1" in result.output) == (5, True), result.output
    assert "latest" not in read_stories(inventory.parent / ".remedy" / FILE_NAME)


def test_unlock_refuses_what_no_run_is_called(inventory: Path) -> None:
    inventory.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n')
    for words in (["nosuch"], ["nosuch", "--force", "-o", str(inventory.parent / "unlock.json")]):
        result = CliRunner().invoke(main, ["unlock", words[0], str(inventory), *words[1:]])
        assert result.exit_code == 2, result.output
        assert "'nosuch' is no id of a run" in result.output
        assert f"remedy history {inventory}" in result.output
    assert "nosuch" not in read_stories(inventory.parent / ".remedy" / FILE_NAME)
    # A run of a different journal may hold a lock here.
    elsewhere = "20260131T120000Z-0a1b2c3d"
    assert CliRunner().invoke(main, ["unlock", elsewhere, str(inventory)]).exit_code == 5
