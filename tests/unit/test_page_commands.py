"""Every command of README and docs is run here, or stands in a list with what runs it, or why nothing does.

They run in a folder that has what the pages name, and hosts at whose addresses nobody listens: what a command
does on hosts is shown by the tests in tests/lab. Here it gets as far as them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.audit import Journal
from remedy.audit.agreement import Agreement, keep
from remedy.audit.approval import NAMESPACE, PLANNER, sign
from remedy.cli.main import main
from remedy.plan import make_plan, section_models, write_plan
from remedy.spec import load_spec
from remedy.transport.reader import load_inventory
from tests.unit.build import WHEN
from tests.unit.pages import ROOT, commands, of_remedy, parsed
from tests.unit.report.first import first_look

RUN = "20260101T000000Z-0123abcd"
INVENTORY = """\
hosts = [
    (f"gpu00{n}", {"ssh_hostname": f"127.0.0.{n}", "ssh_port": 1, "cluster_address": f"10.214.4.{n}"})
    for n in (1, 2)
]
rack1, rack2 = ["gpu001"], ["gpu002"]
"""
LOG = "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
# What stands for something on the pages, and what it is in the folder.
PLACES = {
    "RUN": RUN,
    "PLAN": "plan.json",
    "INVENTORY": "inventory.py",
    "NAME": "hostname",
    "FILE": "slurm.conf",
    "FOLDER": ".",
    "/etc/slurm/": "",
    "/etc/clustershell/groups.d/": "",
    "KIND PATH": "hostfile hosts.txt",
    "gpu07": "gpu001",
    "'gpu[02,05,01]'": "'gpu[001-002]'",
}
# How each command ends where no host is reached; 2, a command line that cannot be used, is of none.
CODES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("check", "plan", "facts", "trust", "rollback", "unlock"), (5,)),
    **dict.fromkeys(("apply", "verify"), (3, 5)),  # nothing is proved; a rehearsal proves nothing
    "audit": (0, 1, 5),  # no host was compared
    "show": (0, 5),
}

LAB = "boots, breaks or ends hosts; tests/lab/test_lab.py"
SUITE = "is this suite, or a part of it"
MEASURED = "measures for minutes; its figures are on the page"
# Those that are not run here.
LISTED = {
    "remedy lab replace gpu02": "tests/lab/test_replacement.py",
    "remedy lab up --lived-in": LAB,
    "remedy lab up --release trixie": LAB,
    "remedy lab up -n 2": LAB,
    "remedy lab down": LAB,
    "remedy init --from ansible hosts.ini": "needs Ansible; tests/unit/inventory/test_from_ansible.py",
    "remedy init --from ansible hosts.json": "tests/unit/inventory/test_from_ansible.py",
    "scontrol show nodes": "is Slurm's own; tests/lab/test_slurm.py",
    "scontrol show nodes -o | remedy init --from slurm -": "tests/unit/inventory/test_from_slurm.py",
    "scontrol show job ID": "is Slurm's own",
    "salloc --exclusive --nodelist=gpu[01-04] remedy verify inventory.py --launcher slurm": (
        "needs Slurm; tests/lab/test_slurm.py"
    ),
    "sh /var/lib/remedy/runs/RUN/undo": "on a host; tests/lab/test_apply.py",
    "chmod go-w": "on a host, by its operator",
    "apk add cargo": "on Alpine, which was not tried",
    "python -m remedy": "tests/unit/cli/test_start.py",
    "man remedy-apply": "needs man; tests/unit/report/test_manual.py reads the pages",
    'eval "$(remedy completion bash)"': "tests/unit/cli/test_completion.py",
    "pip install .": "tests/packaging/test_wheel.py",
    "pip install regopy": "scripts/setup.sh does that; tests/unit/test_recipes.py",
    "remedy show plan.json --json | python judge.py plan.rego": "tests/unit/test_recipes.py",
    "install -d -g gpuadmins -m 2770 .remedy": "tests/unit/test_teams.py",
    "chgrp -R gpuadmins .remedy": "tests/unit/test_teams.py",
    "chmod -R g+rwX,o= .remedy": "tests/unit/test_teams.py",
    "find .remedy -type d -exec chmod g+s {} +": "tests/unit/test_teams.py",
    "scripts/demo": "boots hosts for minutes; the README's transcript is of it",
    "scripts/tour": "boots hosts for minutes; docs/tour.md is what it printed: tests/unit/test_tour.py",
    "scripts/docs": "tests/unit/report/test_explain.py compares the pages",
    "scripts/constraints renew": "asks an index; tests/packaging/test_dependencies.py",
    "scripts/constraints audit": "asks an index; tests/packaging/test_dependencies.py",
    "ruff format . && ruff check . && mypy": SUITE,
    "pytest -q tests/lab/test_NAME.py": "of a remedy that is not there",
    "pytest -q tests/unit/deploys -k NAME": "of a remedy that is not there",
}


def why_not(command: str) -> str:
    """Return why a command is not run here; "" where it is."""
    if re.match(r"(REMEDY_\w+=\S+ )?(scripts/(test|lanes)|pytest)\b", command):
        return LISTED.get(command, SUITE)
    if command.startswith("python -m benchmarks."):
        return MEASURED
    if " | jq " in command:
        return "tests/unit/test_teams.py"
    return LISTED.get(command, "")


# Whose commands scripts/tour typed, on hosts; test_tour.py compares the two.
TOUR = "tour.md"
# The pages have some commands more than once.
TYPED = list(dict.fromkeys(command for page, command in commands() if page != TOUR))


def words_of(command: str) -> list[str]:
    """Return the words of one of remedy's commands, up to where the shell does something with its output."""
    words = shlex.split(command)[1:]
    return words[: next((n for n, word in enumerate(words) if word in ("|", ">")), len(words))]


def is_whole(command: str) -> bool:
    """Say whether a command can be run; a sentence may name a command, or one of its options, alone."""
    return not command.startswith("remedy ") or parsed(words_of(placed(command))) is True


def placed(command: str) -> str:
    """Return a command with the folder's names in place of the pages'."""
    for name, value in PLACES.items():
        command = command.replace(name, value)
    return command


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages name: an inventory, a signed plan, a run that can be taken back, logs, and lists."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "inventory.py").write_text(INVENTORY)
    inventory = load_inventory(folder / "inventory.py")
    spec = load_spec(None, section_models())
    plan = make_plan(replace(first_look(2, spec=spec), inventory=inventory), WHEN)
    write_plan(plan, folder / "plan.json")
    (folder / ".ssh").mkdir(mode=0o700)
    for name, purpose in (("id_ed25519", PLANNER), ("ann", NAMESPACE), ("bob", NAMESPACE)):
        key = folder / ".ssh" / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        public = key.with_suffix(".pub").read_text()
        with (folder / "allowed_signers").open("a") as file:
            file.write(f'{name}@example.org namespaces="{purpose}" {public}')
        sign(plan, folder / "plan.json", key, planner=purpose == PLANNER)
    journal = Journal(folder / ".remedy", run=RUN, mode="apply")
    agreement = Agreement(plan.model_copy(update={"author": "ann@ops"}))  # a plan is used once
    keep(agreement, folder / ".remedy", RUN)
    journal.write("planned", **agreement.record(agreement.plan, waves=1))
    journal.write("began", hosts=list(plan.hosts))
    for number in range(2):
        (folder / "logs").mkdir(exist_ok=True)
        (folder / "logs" / f"rank{number}.log").write_text(LOG)
    (folder / "train.log").write_text(LOG)
    (folder / "slurm.conf").write_text("NodeName=gpu[01-02] NodeAddr=192.0.2.[11-12]\n")
    (folder / "hosts.txt").write_text("gpu01 slots=8\ngpu02 slots=8\n")
    (folder / "local.cfg").write_text("train: gpu[01-02]\n")
    return folder


@pytest.fixture
def folder(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder and the user's home."""
    copy = shutil.copytree(desk, tmp_path / "desk")
    monkeypatch.chdir(copy)
    monkeypatch.setenv("HOME", str(copy))
    return copy


@pytest.mark.parametrize("command", [c for c in TYPED if not why_not(c) and is_whole(c)])
@pytest.mark.usefixtures("folder")
def test_a_command_of_a_page_runs(command: str) -> None:
    assert command.startswith("remedy "), "run it here, or put it into the list with its reason"
    text = placed(command)
    words = words_of(text)
    expected = CODES.get(words[0], (0,)) if "--help" not in words else (0,)
    if re.search(r" [|>] ", text):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", text],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return
    if words[:2] == ["init", "--from"]:
        Path("inventory.py").unlink()  # hosts of a different program go into a new one
    result = CliRunner().invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in expected, result.output
    assert result.output


@pytest.mark.parametrize("command", [c for c in TYPED if why_not(c)])
def test_a_command_that_is_not_run_has_a_reason_that_is_so(command: str) -> None:
    for path in re.findall(r"tests/[\w/]+\.py|scripts/\w+\.sh", why_not(command)):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"(?<![\w/])(?:tests|scripts)/[\w/]+(?:\.py)?", command):
        assert "NAME" in path or (ROOT / path).exists(), path
    if command.startswith("python -m benchmarks."):
        assert importlib.util.find_spec(command.split()[2]) is not None


def test_the_list_has_nothing_that_no_page_has() -> None:
    assert set(LISTED) - set(TYPED) == set()


def test_most_of_the_pages_commands_are_run() -> None:
    known = [command for page, command in of_remedy() if page != TOUR]
    run = [command for command in known if not why_not(command) and is_whole(command)]
    assert len(set(run)) > 40
