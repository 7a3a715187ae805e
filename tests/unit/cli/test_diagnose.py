"""The command: what it prints, its document and its exit codes; and candidates held against hosts."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from remedy.diagnose.confirm import confirm, settled
from remedy.diagnose.cures import command_for, remedy_for
from remedy.diagnose.diagnosis import Confirmation, ConfirmationStatus, Diagnosis
from remedy.diagnose.logs import diagnose_lines
from remedy.plan import Finding, FindingKind
from tests.unit.plans import plan_with

REFUSED = "NCCL WARN socketStartConnect: Connect to 10.0.0.9<41235> failed : No route to host"


def _finding(label: str, kind: FindingKind = FindingKind.REPORT) -> Finding:
    return Finding(
        host="gpu07",
        remedy="firewall",
        kind=kind,
        label=label,
        title="the firewall drops what peers send",
        evidence=("10.0.0.9:41235",),
    )


@pytest.mark.parametrize(
    ("text", "label", "code"),
    [
        ("OSError: libcudart.so.12: cannot open shared object file", "missing-library", 3),
        ("np_tensor can not be split by strategy!", "application-error", 3),
        (
            "Unable to resolve hostname to a (local) address. Using the loopback address as fallback.",
            "loopback-hostname",
            0,
        ),
        ("nothing at all", "unknown", 1),
        ("training finished", "healthy", 0),
        ("WARNING: There was an error initializing an OpenFabrics device.", "healthy", 1),
    ],
)
def test_exit_codes_and_document(tmp_path: Path, text: str, label: str, code: int) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{text}\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["diagnose", "--json", str(log)])
    document = json.loads(result.stdout)
    assert document["schema"] == "remedy.diagnosis/1"
    assert (document["label"], result.exit_code) == (label, code)
    if label not in ("unknown", "healthy"):
        assert document["lead"]["file"] == str(log)
        assert document["lead"]["line"] == 1


def test_standard_input_and_words() -> None:
    result = CliRunner().invoke(main, ["diagnose", "--all", "-"], input=REFUSED)
    assert result.exit_code == 0
    assert "firewall-ports" in result.stdout
    assert "standard input:1" in result.stdout
    assert "remedy explain firewall-ports" in result.stdout


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "Note: the logs are empty"),
        (gzip.compress(b"nothing of note", mtime=0)[:12], "Note: train.log: read only in part"),
        (
            b"step 3\nfailed to frobnicate the widget\n",
            "Note: no entry of the catalogue explains: ",
        ),
    ],
)
def test_what_keeps_it_from_an_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.log").write_bytes(content)
    result = CliRunner().invoke(main, ["diagnose", "train.log"])
    assert result.exit_code == 1
    assert told in result.stdout
    assert "Next: " in result.stdout


def test_a_file_that_cannot_be_read_is_told() -> None:
    result = CliRunner().invoke(main, ["diagnose", "/proc/self/mem"])
    assert result.exit_code == 1
    assert "Note: /proc/self/mem: cannot be read ([Errno 5]" in result.stdout


def test_whoever_reads_no_terminal_is_told_what_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("r0.log", "r1.log"):
        (tmp_path / name).write_text(REFUSED + "\n")
    assert CliRunner().invoke(main, ["diagnose", str(tmp_path)]).stderr == ""
    monkeypatch.setattr("remedy.cli.diagnose.MANY", 2)
    result = CliRunner().invoke(main, ["diagnose", str(tmp_path)])
    size = 2 * (len(REFUSED) + 1)
    assert result.stderr == f"Reading 2 logs, {size} bytes ...\n"
    quiet = CliRunner().invoke(main, ["diagnose", "-q", str(tmp_path)])
    assert (quiet.stderr, quiet.stdout) == ("", result.stdout), "what failed is shown"


def test_what_is_only_possibly_well_is_said_and_no_success(tmp_path: Path) -> None:
    (log := tmp_path / "train.log").write_text(
        "WARNING: There was an error initializing an OpenFabrics device.\n"
    )
    result = CliRunner().invoke(main, ["diagnose", "--quiet", str(log)])
    assert result.exit_code == 1
    assert "show no failure, and do not prove that there was none" in result.stdout
    assert "Next: if the run failed or hangs, give the logs of all ranks" in result.stdout


def test_quiet_says_nothing_of_a_run_that_is_well(tmp_path: Path) -> None:
    (log := tmp_path / "train.log").write_text("step 1\n")
    words = ["diagnose", str(log)]
    diagnosis = Diagnosis.model_validate(
        {**diagnose_lines({"a": ["step 1"]}).model_dump(), "label": "healthy"}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remedy.diagnose.logs.diagnose_sources", lambda _: diagnosis)
        assert CliRunner().invoke(main, words).stdout
        quiet = CliRunner().invoke(main, [*words, "--quiet"])
        assert (quiet.exit_code, quiet.output) == (0, "")
        document = json.loads(CliRunner().invoke(main, [*words, "-q", "--json"]).stdout)
        assert document["label"] == "healthy"
    refused = CliRunner().invoke(main, [*words, "-q", "-v"])
    assert (refused.exit_code, "exclude each other" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no.log"], "no such file or folder: 'no.log'"),
        (["empty"], "no log in 'empty'"),
        (["--limit", "gpu07", "train.log"], "Add --inventory"),
        (["--inventory", "no.py", "train.log"], "no.py: there is no such inventory file"),
        (["--inventory", "bad.py", "train.log"], "bad.py, line 1"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bad.py").write_text("hosts = [\n", encoding="utf-8")
    Path("train.log").write_text(REFUSED, encoding="utf-8")
    result = CliRunner().invoke(main, ["diagnose", *words])
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_pipe_that_a_shell_names(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(compress(f"{REFUSED}\n".encode()))
    # A process of its own: other tests leave descriptors in this one, and a pipe that any of them holds open
    # does not end.
    main = "from remedy.cli.main import main; main()"
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" diagnose <(cat "$2")', sys.executable, main, str(log)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("firewall-ports")


def test_hosts_confirm_a_candidate() -> None:
    found = diagnose_lines({"log": [REFUSED]})
    confirmations = confirm(found, plan_with(_finding("wrong-interface")), ["gpu07"])
    by_label = {one.label: one for one in confirmations}
    assert by_label["wrong-interface"].status is ConfirmationStatus.CONFIRMED
    assert by_label["wrong-interface"].hosts == ("gpu07",)
    assert "10.0.0.9:41235" in by_label["wrong-interface"].evidence[0]
    assert by_label["firewall-ports"].status is ConfirmationStatus.REFUTED
    decided, first = settled(found, confirmations)
    assert decided.label == "wrong-interface"
    assert decided.confidence == "certain"
    assert first is not None


def test_hosts_that_cannot_tell_leave_the_text_its_word() -> None:
    found = diagnose_lines({"log": [REFUSED]})
    confirmations = confirm(
        found, plan_with(_finding("firewall-ports", FindingKind.UNKNOWN)), ["gpu07"]
    )
    assert confirmations[0].status is ConfirmationStatus.OPEN
    assert settled(found, confirmations)[0] == found


def test_the_command_to_type() -> None:
    assert remedy_for("application-error") is None
    assert remedy_for("firewall-ports") == "firewall"
    certain, likely = (
        Diagnosis(label="firewall-ports", confidence=c) for c in ("certain", "likely")
    )
    assert command_for("inv.py", (), certain) == "remedy apply inv.py"
    assert (
        command_for("inv.py", (), Diagnosis(label="missing-library", confidence="certain")) is None
    )
    # What is not certain changes nothing: the hosts are asked first.
    ask = "remedy diagnose log --inventory INVENTORY"
    assert command_for("inv.py", (), likely, ask) == ask
    assert command_for("inv.py", (), likely) == "remedy check inv.py"


def test_one_command_puts_everything_right_that_the_hosts_confirm() -> None:
    wall = Confirmation(
        label="firewall-ports", status=ConfirmationStatus.CONFIRMED, hosts=("a", "b"), curable=True
    )
    name = Confirmation(
        label="loopback-hostname",
        status=ConfirmationStatus.CONFIRMED,
        hosts=("b", "c"),
        curable=True,
    )
    gone = Confirmation(label="mtu-mismatch", status=ConfirmationStatus.REFUTED)
    told = (wall, name, gone)
    assert (
        command_for("inv.py", told, Diagnosis(label="firewall-ports", confidence="likely"))
        == "remedy apply inv.py --limit a,b,c"
    )
    assert (
        command_for("inv.py", told, Diagnosis(label="unknown", confidence="likely"))
        == "remedy apply inv.py --limit a,b,c"
    )
    assert command_for("inv.py", told, Diagnosis(label="mtu-mismatch", confidence="likely")) is None
