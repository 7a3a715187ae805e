"""What the journal is made into: stories, tables, what hosts know of it, and the published schemas."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from remedy.apply.report import ChangeResult, ChangeStatus
from remedy.audit import Head, Journal, read_stories, witness
from remedy.audit.agreement import Agreement, keep
from remedy.audit.export import as_csv, moment, plans_of, rows, within
from remedy.audit.journal import FILE_NAME
from remedy.cli.document import head
from remedy.cli.main import main
from remedy.errors import UsageError
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.document import RunDocument, run_document
from remedy.report.schema import MODELS, schema_of
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.verify.verdict import Verdict
from tests.unit.schemas import conforms


def change(host: str, number: int, title: str = "set the name") -> Change:
    return Change(
        id=f"{number:02d}-hostname",
        host=host,
        remedy="hostname",
        title=title,
        reason="two hosts have one name",
        label="duplicate-hostname",
        action=CommandAction(observe="uname -n", before="node", after=host, do="x", undo="y"),
    )


def plan() -> Plan:
    return Plan(
        tool_version="0.1.0",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        inventory_digest="i",
        spec_digest="s",
        changes=(
            change("gpu01", 1),
            change("gpu02", 1),
            change("gpu02", 2, "=cmd()"),
            change("gpu03", 1),
        ),
    )


def told(status: str, *numbers: int, detail: str = "") -> dict[str, Any]:
    results = [{"id": f"{n:02d}-hostname", "status": status, "detail": detail} for n in numbers]
    return {"refused": "", "reverted": "", "results": results}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two runs: one that was stopped after the first wave, and one that went on with it."""
    (tmp_path / "inventory.py").write_text("")
    folder = tmp_path / ".remedy"
    first = Journal(folder, run="r1", mode="apply")
    first.write("planned", **Agreement(plan()).record(plan(), waves=3))
    keep(Agreement(plan()), folder, "r1")
    first.write("began", hosts=["gpu01"])
    first.write("changed", hosts={"gpu01": told("failed", 1, detail="no room")})
    first.write("stopped", failed=["gpu01"], limit=0)
    first.write("ended", exit_code=1, hosts={"gpu01": "failed", "gpu02": "not reached"}, boots={})
    rest = plan().restricted(["gpu02"])
    second = Journal(folder, run="r2", mode="apply")
    second.write("planned", **Agreement(plan(), resumes="r1", by="bob@ops").record(rest, waves=1))
    keep(Agreement(plan()), folder, "r2")
    second.write("began", hosts=["gpu02"])
    second.write("changed", hosts={"gpu02": told("done", 1, 2)})
    second.write("verified", passed=True, reason="the sum is exact")
    second.write("ended", exit_code=0, hosts={"gpu02": "changed"}, boots={"gpu02": "b"})
    return folder


def remedy(*words: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_story_tells_who_did_what_and_what_is_left(home: Path) -> None:
    first, second = read_stories(home / FILE_NAME).values()
    assert (first.by, first.began, first.unfinished) == ("ann@ops", {"gpu01"}, ("gpu02", "gpu03"))
    assert (second.by, second.resumes, second.unfinished) == ("bob@ops", "r1", ())
    assert (first.exit_code, second.exit_code, second.proved) == (1, 0, True)
    assert first.words == {"gpu01": {"01-hostname": "no room"}}
    assert second.boots == {"gpu02": "b"}


def test_a_run_that_was_cut_off_is_unfinished_where_nothing_was_heard(tmp_path: Path) -> None:
    work = Journal(tmp_path, run="r1", mode="apply")
    work.write("planned", **Agreement(plan()).record(plan(), waves=1))
    work.write("began", hosts=["gpu01", "gpu02", "gpu03"])
    (story,) = read_stories(work.path).values()
    assert story.unfinished == ("gpu01", "gpu02", "gpu03")
    assert story.began == {"gpu01", "gpu02", "gpu03"}
    assert story.exit_code is None


def table(home: Path) -> list[dict[str, str]]:
    found = list(read_stories(home / FILE_NAME).values())
    return list(csv.DictReader(io.StringIO(as_csv(rows(found, plans_of(home, found))))))


def test_the_table_has_a_row_for_each_change_of_each_host(home: Path) -> None:
    lines = table(home)
    assert [(r["run"], r["host"], r["change"], r["status"]) for r in lines] == [
        ("r1", "gpu01", "01-hostname", "failed"),
        ("r1", "gpu02", "01-hostname", "planned"),
        ("r1", "gpu02", "02-hostname", "planned"),
        ("r1", "gpu03", "01-hostname", "planned"),
        ("r2", "gpu02", "01-hostname", "done"),
        ("r2", "gpu02", "02-hostname", "done"),
    ]
    first, last = lines[0], lines[-1]
    assert (first["by"], first["before"], first["after"]) == ("ann@ops", "node", "gpu01")
    assert (first["detail"], first["proved"], first["exit_code"]) == ("no room", "", "1")
    assert (last["proved"], last["of"], last["plan"]) == ("yes", "r1", plan().digest)


def test_no_field_is_a_formula_to_a_spreadsheet(home: Path) -> None:
    assert table(home)[-1]["title"] == "'=cmd()"


def test_a_plan_that_was_exchanged_tells_nothing(home: Path) -> None:
    other = plan().model_copy(update={"author": "eve@ops"})
    (home / "runs" / "r1" / "plan.json").unlink()
    (home / "runs" / "r1").rmdir()
    keep(Agreement(other), home, "r1")
    assert {row["before"] for row in table(home) if row["run"] == "r1"} == {""}
    shown = remedy("show", "r1", "--home", home)
    assert "NOT the plan that the journal names" in shown.output


@pytest.mark.parametrize(
    ("since", "until", "runs"),
    [(None, None, 2), ("2020-01-01", None, 2), (None, "2020-01-01", 0), ("2999-01-01", None, 0)],
)
def test_a_range_of_time(home: Path, since: str | None, until: str | None, runs: int) -> None:
    begin = moment(since) if since else None
    end = moment(until, end=True) if until else None
    found = [s for s in read_stories(home / FILE_NAME).values() if within(s, begin, end)]
    assert len(found) == runs


def test_a_date_as_an_end_means_the_end_of_that_day() -> None:
    assert moment("2026-01-31", end=True) == moment("2026-02-01T00:00:00Z")
    assert moment("2026-01-31T12:00:00Z", end=True) == moment("2026-01-31T12:00:00Z")
    with pytest.raises(UsageError, match="is not a date"):
        moment("yesterday")


def test_export_gives_the_whole_story_of_a_host(home: Path) -> None:
    done = remedy(
        "audit", "export", home.parent / "inventory.py", "--format", "json", "--host", "gpu02"
    )
    assert done.exit_code == 0, done.output
    assert [(row["run"], row["status"]) for row in json.loads(done.output)["rows"]] == [
        *[("r1", "planned")] * 2,
        *[("r2", "done")] * 2,
    ]
    listed = remedy("history", home.parent / "inventory.py", "--host", "gpu01").output
    assert "r1" in listed
    assert "r2" not in listed


@pytest.mark.parametrize("command", [("history",), ("audit", "export")])
def test_hosts_on_record_are_selected_as_remedy_prints_them(
    home: Path, command: tuple[str, ...]
) -> None:
    inventory = home.parent / "inventory.py"
    both = remedy(*command, inventory, "--host", "gpu[01-02]")
    assert (both.exit_code, "r1" in both.output, "r2" in both.output) == (0, True, True)
    nobody = remedy(*command, inventory, "--host", "gpu9")
    assert (nobody.exit_code, "gpu9: no host" in nobody.output) == (2, True)


def test_show_tells_a_run(home: Path) -> None:
    shown = remedy("show", "r1", "--home", home).output
    for part in (
        "by ann@ops",
        "set the name",
        "failed      gpu01",
        "no room",
        "not made    gpu[02-03]",
    ):
        assert part in shown, shown
    assert "resumes run r1" in remedy("show", "r2", "--home", home).output


def test_show_tells_a_stored_plan() -> None:
    stored = Path(__file__).parents[1] / "data" / "plans" / "format-1.json"
    shown = remedy("show", stored).output
    for part in ("by ann@ops", "gpu01: write", "-127.0.1.1 gpu01", "+10.0.0.1 gpu01"):
        assert part in shown, shown


@pytest.mark.parametrize("words", [["audit", "verify"], ["audit", "export"], ["history"]])
def test_an_inventory_that_is_not_there_is_no_empty_journal(
    tmp_path: Path, words: list[str]
) -> None:
    done = remedy(*words, tmp_path / "nowhere.py")
    assert done.exit_code == 2
    assert "no such inventory" in done.output


# ---- what hosts keep of the journal


KNOWN = {0: "genesis", 1: "one", 2: "two"}


def line(
    seq: int, digest: str, journal: str = "genesis", place: str = "here", run: str = "r1"
) -> str:
    return f"{journal} {seq} {digest} {place} {run}"


@pytest.mark.parametrize(
    ("heads", "runs", "problem"),
    [
        ([line(1, "one"), line(2, "two", run="r2")], ["r1", "r2"], ""),
        ([line(9, "x", journal="another", place="there")], [], ""),
        ([line(1, "other")], ["r1"], "record 1 is not the one"),
        ([line(7, "seven")], ["r1"], "left record 7 on it, and the journal ends with 2"),
        ([line(1, "one", journal="another")], ["r1"], "of another journal in this folder"),
        ([line(1, "one")], ["r1", "r2"], "run r2, which changed it as the journal has it, left no"),
        (["no head", line(1, "one").replace(" 1 ", " ² ")], ["r1"], "left no record"),
        ([], ["r1"], "left no record"),
        (None, ["r1"], "did not print"),
    ],
)
def test_a_host_is_a_witness(heads: list[str] | None, runs: list[str], problem: str) -> None:
    found = witness.judge(heads, KNOWN, "here", runs)
    assert (problem in found) if problem else found == ""


@pytest.mark.parametrize(
    ("number", "head", "vouches"),
    [
        (0, "{j} 1 {1} here r", True),
        (1, "{j} 1 {1} here r", True),
        (2, "{j} 1 {1} here r", False),  # what came later is not in what it keeps
        (0, "{j} 1 {0} here r", False),
        (0, "{j} 7 {1} here r", False),
        (0, "another 1 {1} there r", False),
        (0, "{j} ² {1} here r", False),
        (0, "", False),
    ],
)
def test_a_host_vouches_for_the_records_before_the_one_it_keeps(
    tmp_path: Path, number: int, head: str, vouches: bool
) -> None:
    journal = Journal(tmp_path, run="r", mode="apply")
    heads = [journal.write(event) for event in ("planned", "began", "ended")]
    hashes = [head.hash for head in heads]
    kept = head.replace("{j}", heads[0].journal)
    for place in (0, 1):
        kept = kept.replace(f"{{{place}}}", hashes[place])
    assert witness.vouching({"gpu01": kept}, tmp_path, number) == ({"gpu01"} if vouches else set())
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes().replace(b'"event":"planned"', b'"event":"Planned"'))
    assert witness.vouching({"gpu01": kept}, tmp_path, number) == set()


def test_what_a_host_keeps_is_one_line_of_five_words(tmp_path: Path) -> None:
    words = witness.words(Head("j", 3, "h"), tmp_path, "r1").split(" ")
    assert words == ["j", "3", "h", witness.place(tmp_path), "r1"]


# ---- schemas


def test_what_is_written_has_the_shape_of_its_schema(home: Path) -> None:
    schema = schema_of("plan")
    document = json.loads((home / "runs" / "r1" / "plan.json").read_text())
    assert conforms(document, schema, schema)
    old = json.loads((Path(__file__).parents[1] / "data" / "plans" / "format-1.json").read_text())
    assert conforms(old, schema, schema)
    assert not conforms({**document, "plan": {**document["plan"], "author": 1}}, schema, schema)
    record = schema_of("journal")
    for text in (home / FILE_NAME).read_text().splitlines():
        assert conforms(json.loads(text), record, record)


def test_the_document_of_a_run_has_the_shape_of_its_schema() -> None:
    result = ChangeResult(id="01-hostname", status=ChangeStatus.DONE)
    finding = Finding(host="gpu01", remedy="r", kind=FindingKind.REPORT, label="l", title="t")
    outcome = RunOutcome(
        mode="apply",
        run="r1",
        inventory="inventory.py",
        hosts={"gpu01": HostOutcome(HostStatus.CHANGED, (result,), (finding,))},
        plan=plan(),
        verdict=Verdict(passed=False, reason="nobody answered"),
    )
    document = json.loads(json.dumps({**head("run"), **run_document(outcome)}))
    schema = schema_of("run")
    assert conforms(document, schema, schema)
    assert RunDocument.model_validate_json(json.dumps(document)).exit_code == outcome.exit_code
    assert set(document) == set(schema["properties"])
    assert not conforms({**document, "exit_code": "0"}, schema, schema)


@pytest.mark.parametrize(
    "text",
    [
        "nothing is wrong\n",
        "RuntimeError: [enforce fail] Unable to resolve hostname to a (local) address\n",
    ],
)
def test_the_document_of_a_diagnosis_has_the_shape_of_its_schema(tmp_path: Path, text: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(text)
    document = json.loads(remedy("diagnose", log, "--json").output)
    schema = schema_of("diagnosis")
    assert conforms(document, schema, schema)
    assert set(document) == set(schema["properties"])


@pytest.mark.parametrize("kind", MODELS)
def test_a_schema_is_printed_and_says_what_it_is(kind: str) -> None:
    done = remedy("schema", kind)
    assert done.exit_code == 0
    schema = json.loads(done.output)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["title"] == f"remedy {kind}"
    assert schema["properties"]
