"""Signals while a command starts: amid its imports it ends as a shell expects, without a traceback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "remedy"
MODULE = (sys.executable, "-m", "remedy")
# Python imports it before all others: whatever imports MODULE waits, as on a slow disk.
SITE = """\
import os, sys, time
class Slow:
    def find_spec(name, *_):
        if name == os.environ["MODULE"]:
            open(os.environ["BEGUN"], "w").close()
            time.sleep(30)
sys.meta_path.insert(0, Slow)
"""


MODULES = ("click", "remedy.cli.check", "pydantic", "gevent", "remedy.runs.check")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
USUAL = [("click", signal.SIGINT), ("remedy.runs.check", signal.SIGTERM)]


@pytest.mark.parametrize(
    ("module", "number", "command"),
    [
        *(
            pytest.param(
                module,
                number,
                (str(COMMAND),),
                marks=() if (module, number) in USUAL else pytest.mark.full,
            )
            for module in MODULES
            for number in SIGNALS
        ),
        ("click", signal.SIGINT, MODULE),
    ],
)
def test_a_signal_amid_the_imports(
    tmp_path: Path, module: str, number: signal.Signals, command: tuple[str, ...]
) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "sitecustomize.py").write_text(SITE)
    inventory = tmp_path / "inventory.py"
    # Nobody listens there.
    inventory.write_text("hosts = [('gpu01', {'ssh_hostname': '127.0.0.1', 'ssh_port': 9})]\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [*command, "check", str(inventory)],
        env=os.environ | {"PYTHONPATH": path, "MODULE": module, "BEGUN": str(begun)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    try:
        end = time.monotonic() + 60
        while not begun.exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(number)
        text, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode in (-number, 128 + number), text  # a shell reports both alike
    assert not re.search("Traceback|Exception ignored", text), text


def test_the_module_is_the_command() -> None:
    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [*MODULE, *words]
        return subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False
        )

    wrong = run("check", "--bogus")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("Usage: remedy check ")
    completed = run(_REMEDY_COMPLETE="bash_complete", COMP_WORDS="remedy hist", COMP_CWORD="1")
    assert completed.stdout.split(",")[-1].strip() == "history"
