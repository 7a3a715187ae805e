"""Completion: what is offered, that no inventory is run for it, and that no name can do harm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.causes import causes
from remedy.cli import completion, names
from remedy.cli.main import COMPLETE, main
from remedy.inventory import Inventory, Node
from remedy.lab.faults import catalogue
from remedy.plan import remedies
from remedy.spec import SECTIONS

PROGRAM = Path(sysconfig.get_path("scripts")) / "remedy"
RUN = "20260101T000000Z-0123abcd"
CHECK = "20260102T000000Z-0123abcd"
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "a;b",
    "a b",
    "*",
    "-rf",
    "é",
    "x\x1b[2J",
    "@$(x)",
    "a'b",
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder whose inventory must not be run, with a cache of names and a journal."""
    (tmp_path / "inventory.py").write_text("open('executed', 'w')\nraise SystemExit('run')\n")
    home = tmp_path / ".remedy"
    home.mkdir()
    known = {"hosts": ["gpu01", "gpu02", "login", *HOSTILE], "groups": ["train", *HOSTILE]}
    (home / names.CACHE).write_text(json.dumps({"inventory.py": known}))
    runs: tuple[object, ...] = (
        {"run": RUN, "mode": "apply"},
        {"run": CHECK, "mode": "check"},
        {"run": "$(x)"},
        [],
        5,
    )
    (home / "journal.jsonl").write_text('{"run": "\n' + "\n".join(map(json.dumps, runs)) + "\n")
    return tmp_path


def offered(folder: Path, *words: str) -> list[str]:
    """Return what bash would be offered for the last word."""
    environment = {
        **os.environ,
        completion.VARIABLE: "bash_complete",
        "COMP_WORDS": " ".join(("remedy", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [str(PROGRAM)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert not (folder / "executed").exists()
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rol",), ["rollback"]),
        (("check", "inventory.py", "--limit", "gpu"), ["gpu01", "gpu02"]),
        (("check", "--limit", "@"), ["@train"]),
        (("check", "--limit", "gpu01,lo"), ["gpu01,login"]),
        (("check", "--limit", "gpu*!lo"), ["gpu*!login"]),
        (("check", "--limit", "gpu*^lo"), ["gpu*^login"]),
        # Here ^ begins the name of a file.
        (("check", "--limit", "^"), []),
        (("check", "--limit", "gpu01,^lo"), []),
        (("verify", "inventory.py", "--divide", "tr"), ["train"]),
        (("check", "--limit", "'gpu*&@tr"), ["gpu*&@train"]),
        (("check", "--limit", "gpu01,@tr"), ["gpu01,@train"]),
        # Bash sets = apart; with words of its own it does not.
        (("check", "--limit", "=", "gpu01,lo"), ["gpu01,login"]),
        (("check", "inventory.py", "--limit", "="), ["gpu01", "gpu02", "login", "@train"]),
        (("check", "--limit", "=", "gpu01", "--only", "=", "hostn"), ["hostname"]),
        (("check", "--limit=gpu01,lo"), ["--limit=gpu01,login"]),
        (("history", "inventory.py", "--host", "lo"), ["login"]),
        (("trust", "inventory.py", "--replace", "lo"), ["login"]),
        (("plan", "inventory.py", "--only", "hostname,lim"), ["hostname,limits"]),
        (("apply", "inventory.py", "--skip", "dev"), ["dev_shm"]),
        (("rollback", ""), ["latest", RUN]),
        (("rollback", "2026"), [RUN]),
        (("show", "2026"), ["2026", CHECK, RUN]),
        (("unlock", "2026"), [RUN]),
        (("apply", "inventory.py", "--resume", "la"), ["latest"]),
        (("explain", "duplicate-h"), ["duplicate-hostname"]),
        (("explain", "appr"), ["approval"]),
        (("lab", "break", "gpu01", "no-get"), ["no-getent"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("init", "--from", ""), ["ansible", "clustershell", "hostfile", "slurm"]),
        (("init", "--from", "sl"), ["slurm"]),
        (("init", "--from", "=", "cl"), ["clustershell"]),
        (
            (
                "init",
                "--from=ho",
            ),
            ["--from=hostfile"],
        ),
        (("schema", "lab"), ["lab-status"]),
        (("facts", "inventory.py", "kern"), ["kernel"]),
    ],
)
def test_names_are_offered(site: Path, words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(site, *words) == expected


def test_show_offers_runs_and_files(site: Path) -> None:
    assert offered(site, "show", "") == ["", "latest", CHECK, RUN]


def test_behind_a_kind_a_file_is_offered(site: Path) -> None:
    assert offered(site, "init", "--from", "slurm", "inv") == ["inv"]


def test_runs_are_those_of_the_journal_that_is_given(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    home = site / ".remedy"
    assert offered(away, "show", "--home", str(home), "2026") == ["2026", CHECK, RUN]
    for words in (["--home", str(home)], [f"--home={home}"], ["--home", "=", str(home)]):
        assert names.runs(["show", *words]) == [CHECK, RUN]
        assert names.runs(["show", *words], ("apply",)) == [RUN]
        assert names.hosts(["show", *words])[:1] == ["gpu01"]
    # As `remedy show` does: an inventory counts before it.
    words = ["show", "--home", str(away), "--inventory", str(site / "inventory.py")]
    assert names.runs(words) == [CHECK, RUN]
    assert names.runs(words[:3]) == []


def test_labs_and_their_hosts_are_offered(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEDY_LAB_DIR", str(site))
    monkeypatch.delenv("REMEDY_LAB_NAME", raising=False)
    assert names.labs() == []
    for name, host in (("default", "gpu01"), ("mine", "big01")):
        (site / "labs" / name).mkdir(parents=True)
        (site / "labs" / name / "state.json").write_text(json.dumps({"hosts": [{"name": host}]}))
    assert names.lab_hosts(["lab", "reset"]) == ["gpu01"]
    assert names.lab_hosts(["lab", "--name=mine", "reset"]) == ["big01"]
    assert names.lab_hosts(["lab", "--name", "../x", "reset"]) == []
    assert offered(site, "lab", "--name", "") == ["default", "mine"]
    assert offered(site, "lab", "--name", "mine", "break", "") == ["big01", "all"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_keeps_the_runs_beside_the_files_of_show(site: Path) -> None:
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    word = (
        f'{script}\nCOMP_WORDS=(remedy show la) COMP_CWORD=2\n_remedy_completion "{PROGRAM}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash"], input=word, cwd=site, capture_output=True, text=True, check=False
    )
    assert done.stdout == "latest\n", done


def test_an_inventory_elsewhere_brings_its_own_names(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    assert offered(away, "check", str(site / "inventory.py"), "--limit", "lo") == ["login"]
    assert offered(away, "check", "--limit", "") == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"inventory.py": 5}', "[" * 100_000, '{"i": {"hosts": 1}}']
)
def test_a_cache_that_is_broken_offers_nothing(site: Path, text: str) -> None:
    (site / ".remedy" / names.CACHE).write_text(text)
    assert offered(site, "check", "--limit", "") == []


def test_no_hostile_name_is_offered(site: Path) -> None:
    assert offered(site, "check", "--limit", "") == ["gpu01", "gpu02", "login", "@train"]
    assert names.plain(HOSTILE) == []


def test_names_are_those_of_the_program() -> None:
    assert names.remedies() == sorted(remedy.name for remedy in remedies())
    assert set(names.causes()) == set(causes())
    assert names.faults() == sorted(fault.name for fault in catalogue())
    assert set(completion.SECTIONS) == set(SECTIONS)


def test_commands_keep_names_where_there_is_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    inventory = Inventory(path, (Node("gpu01", "10.0.0.1", groups=("train",)),))
    names.keep(inventory)
    assert not (tmp_path / ".remedy").exists()
    (tmp_path / ".remedy").mkdir()
    names.keep(inventory)
    assert names.hosts([str(path)]) == [], "the inventory is no file"
    path.write_text("")
    assert names.hosts([str(path)]) == ["gpu01", "@train"]
    before = (tmp_path / ".remedy" / names.CACHE).stat().st_ino
    names.keep(inventory)
    assert (tmp_path / ".remedy" / names.CACHE).stat().st_ino == before, (
        "nothing new, nothing written"
    )


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_is_one_that_the_shell_reads(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert completion.VARIABLE in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_by_the_script(site: Path) -> None:
    script = """
eval "$(remedy completion bash)"
COMP_WORDS=(remedy check inventory.py --limit gpu); COMP_CWORD=4; COMPREPLY=()
$(complete -p remedy | sed 's/.*-F \\([^ ]*\\).*/\\1/') remedy
printf '%s\\n' "${COMPREPLY[@]}"
case $COMP_WORDBREAKS in *@*) exit 1;; esac
"""
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["gpu01", "gpu02"]), done.stderr


@pytest.mark.parametrize(
    ("shell", "words"), [("zsh", ["plain", "gpu01", "_"]), ("fish", ["plain,gpu01"])]
)
def test_the_other_shells_are_answered_as_they_ask(
    site: Path, shell: str, words: list[str]
) -> None:
    asked = {"zsh": "remedy check --limit gpu01", "fish": "remedy check --limit"}[shell]
    environment = {
        **os.environ,
        completion.VARIABLE: f"{shell}_complete",
        "COMP_WORDS": asked,
        "COMP_CWORD": {"zsh": "3", "fish": "gpu01"}[shell],
    }
    done = subprocess.run(
        [str(PROGRAM)], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.splitlines(), done.stderr) == (words, "")


@pytest.mark.parametrize(("shell", "end"), [("zsh", ["_"]), ("fish", [])])
def test_a_value_that_is_joined_to_its_option_comes_with_it(
    site: Path, shell: str, end: list[str]
) -> None:
    joined = "--limit=gpu01,@tr"
    environment = {
        **os.environ,
        completion.VARIABLE: f"{shell}_complete",
        "COMP_WORDS": f"remedy check {joined}",
        "COMP_CWORD": {"zsh": "2", "fish": joined}[shell],
    }
    done = subprocess.run(
        [str(PROGRAM)], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    words = done.stdout.replace("plain,", "").splitlines()
    assert (words, done.stderr) == (
        ["plain"] * (shell == "zsh") + ["--limit=gpu01,@train", *end],
        "",
    )


def test_fish_takes_what_is_behind_the_first_comma_whole() -> None:
    script = CliRunner().invoke(main, ["completion", "fish"]).stdout
    assert 'string split -m 1 "," -- $completion' in script
    assert 'string split ","' not in script
    assert completion.VARIABLE == COMPLETE


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes_by_the_script(site: Path) -> None:
    text = 'remedy completion fish | source; complete -C "remedy check inventory.py --limit gpu01,"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", text],
        cwd=site,
        env={**os.environ, "HOME": str(site), "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (
        0,
        ["gpu01,@train", "gpu01,gpu01", "gpu01,gpu02", "gpu01,login"],
    ), done.stderr
