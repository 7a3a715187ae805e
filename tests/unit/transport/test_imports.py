"""What is imported before the first connection, which every command waits for."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What paramiko and pyinfra would import, and what has to wait until it is used.
LATER = {"invoke", "remedy.plan", "remedy.probe", "remedy.verify"}


def imported(*modules: str) -> set[str]:
    text = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_what_a_connection_does_without_is_not_imported_before_it() -> None:
    assert imported("remedy.cli.main", "remedy.cli.apply", "remedy.runs.session") & LATER == set()


@pytest.mark.parametrize("command", ["check", "apply"])
def test_without_a_proof_nothing_that_proves_is_imported(command: str) -> None:
    found = imported(f"remedy.cli.{command}", "remedy.runs.session", f"remedy.runs.{command}")
    assert {"remedy.verify.ladder", "remedy.runs.wave", "remedy.runs.proof"} & found == set()


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
