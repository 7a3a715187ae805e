"""What is imported before the first connection, which every command waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# What paramiko and pyinfra would import, and what has to wait until it is used.
LATER = {"invoke", "remedy.plan", "remedy.probe", "remedy.verify"}


# The rooms that judge what hosts answered.
JUDGING = ("remedy.deploys.", "remedy.firewall.")


def run(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout


def imported(*modules: str) -> set[str]:
    return set(run(f"import sys, {', '.join(modules)}; print(*sys.modules)").split())


def of_remedy(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "remedy"}


def test_what_a_connection_does_without_is_not_imported_before_it() -> None:
    assert imported("remedy.cli.main", "remedy.cli.apply", "remedy.runs.session") & LATER == set()


@pytest.mark.parametrize("command", ["check", "apply"])
def test_without_a_proof_nothing_that_proves_is_imported(command: str) -> None:
    found = imported(f"remedy.cli.{command}", "remedy.runs.session", f"remedy.runs.{command}")
    assert {"remedy.verify.ladder", "remedy.runs.wave", "remedy.runs.proof"} & found == set()


def test_what_judges_answers_is_not_imported_before_hosts_are_asked() -> None:
    found = imported("remedy.cli.main", "remedy.cli.check", "remedy.runs.session")
    assert len(of_remedy(found)) <= 60
    found = imported("remedy.cli.check", "remedy.runs.session", "remedy.runs.check")
    assert not [name for name in found if name.startswith(JUDGING)]
    assert not {"remedy.report.plan", "remedy.diagnose.diagnosis", "remedy.verify.verdict"} & found


def test_a_question_is_made_without_what_judges_its_answer(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text("hosts = ['gpu01']\n")
    text = (
        "from pathlib import Path\n"
        "from remedy.apply.start import probe_request\n"
        "from remedy.runs.session import open_session\n"
        f"session = open_session(Path({str(tmp_path / 'inventory.py')!r}))\n"
        "request = probe_request(session.inventory, session.spec)\n"
        "import sys; print(len(request.files), *sys.modules)"
    )
    number, *names = run(text).split()
    assert int(number) > 10
    assert not [name for name in names if name.startswith(JUDGING)]


def test_all_that_judges_and_shows_can_be_imported_while_hosts_are_at_work() -> None:
    text = (
        "import sys\n"
        "from remedy.runs import check, session\n"
        "from remedy.cli.common import Options, reports\n"
        "modules = reports(Options(None))\n"
        "spec = session._load(None, {})\n"
        "pieces = list(session._pieces(modules, spec))\n"
        "before = len(sys.modules)\n"
        "for piece in pieces: piece()\n"
        "known = set(sys.modules)\n"
        "from remedy.plan import remedies\n"
        "remedies(), spec.sections\n"
        "print(len(known) - before, *(set(sys.modules) - known))"
    )
    number, *names = run(text).split()
    assert int(number) > 100
    assert names == []


def test_entry_points_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text("hosts = ['gpu01']\n")
    text = (
        "import importlib.metadata as metadata\n"
        "from pathlib import Path\n"
        "readings = []\n"
        "real = metadata.distributions\n"
        "metadata.distributions = lambda **options: readings.append(options) or real(**options)\n"
        "import remedy.cli.main, remedy.transport.cooperative\n"
        "from remedy.transport.reader import load_inventory\n"
        f"load_inventory(Path({str(tmp_path / 'inventory.py')!r}))\n"
        "from remedy.plan import remedies; remedies()\n"
        "print(len(readings))"
    )
    assert run(text) == "1\n"


def test_match_exec_has_what_it_needs() -> None:
    text = (
        "import remedy.transport.cooperative, paramiko.config, sys\n"
        "assert 'invoke' not in sys.modules\n"
        "try:\n"
        "    paramiko.config.invoke.run('true', hide='both')\n"
        "finally:\n"
        "    print('invoke' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"
