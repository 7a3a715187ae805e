"""What the command shows on a real terminal: a bar that goes away, colours, lines folded between words."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from benchmarks.diagnosing import ordinary
from remedy.cli.diagnose import LONG

MAIN = "from remedy.cli.main import main; main()"
ERASED = "\x1b[2K"
FAILED = (
    "[rank3]: RuntimeError: The server socket has failed to listen on any local network address. "
    "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
)
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(*words: str, columns: int = 80, **more: str) -> tuple[str, int]:
    """Run the command in a pseudo-terminal; return what it wrote there and its exit code."""
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm-256color", **more}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    ) as process:
        # At once: the os.close that gevent puts in place, once another test has imported it, may wait.
        io.FileIO(theirs, "w").close()
        written = b""
        # Once the other end is closed, reading fails.
        with contextlib.suppress(OSError):
            while block := os.read(ours, 65536):
                written += block
        os.close(ours)
    return written.decode(), process.returncode


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that is long enough for a bar."""
    log = tmp_path_factory.mktemp("logs") / "train.log"
    ordinary.write(log, LONG // 1_000_000 + 20)
    with log.open("a", encoding="utf-8") as file:
        file.write("\n" + FAILED)
    return log


@pytest.fixture
def short_log(tmp_path: Path) -> Path:
    """A log that is read at once."""
    log = tmp_path / "train.log"
    log.write_text(FAILED, encoding="utf-8")
    return log


@pytest.mark.full
def test_a_long_log_has_a_bar_that_goes_away(long_log: Path) -> None:
    written, code = on_a_terminal("diagnose", str(long_log))
    assert code == 0
    bar, answer = written.rsplit(ERASED, 1)
    assert "Reading" in bar
    assert re.search(r"\d+\.\d/\d+\.\d MB", CODES.sub("", bar))
    assert "Reading" not in answer
    assert "master-port-in-use" in answer
    assert "master-port-in-use" not in bar
    # The cursor is hidden while the bar moves, and shown again.
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")


def test_a_short_log_has_none(short_log: Path) -> None:
    written, _ = on_a_terminal("diagnose", str(short_log))
    assert "Reading" not in written
    assert ERASED not in written


def test_colours_are_for_terminals_that_want_them(short_log: Path) -> None:
    written, _ = on_a_terminal("diagnose", str(short_log))
    assert "\x1b[1;31mmaster-port-in-use" in written
    plain, _ = on_a_terminal("diagnose", str(short_log), NO_COLOR="1")
    # Bold and dim are no colours: what is left out are the codes 30 to 49 and 90 to 107.
    codes = {
        int(n) for found in re.findall(r"\x1b\[([\d;]*)m", plain) for n in found.split(";") if n
    }
    assert not {code for code in codes if 30 <= code <= 49 or 90 <= code <= 107}
    dumb, _ = on_a_terminal("diagnose", str(short_log), TERM="dumb")
    assert "\x1b[" not in dumb


@pytest.mark.parametrize(
    "columns", [40, *(pytest.param(n, marks=pytest.mark.full) for n in (80, 120))]
)
def test_sentences_are_folded_between_words(short_log: Path, columns: int) -> None:
    written, _ = on_a_terminal("diagnose", "--all", str(short_log), columns=columns)
    lines = CODES.sub("", written).replace("\r", "").splitlines()
    # A path and a command stay whole, so that they can be copied.
    whole = (str(short_log), "remedy ", "Look ")
    sentences = [line for line in lines if not any(part in line for part in whole)]
    assert max(map(len, sentences)) <= columns
    words = " ".join(" ".join(lines).split())
    assert (
        "The rendezvous port is taken: a second job, or a left-over process of the last one."
        in words
    )
    assert FAILED.split(": ", 1)[1].strip()[:150] in words
    assert any(line == "Run: remedy apply INVENTORY" for line in lines)


def test_in_a_pipe_every_sentence_is_one_line(short_log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "diagnose", str(short_log)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "\x1b" not in done.stdout + done.stderr
    cause = "  The rendezvous port is taken: a second job, or a left-over process of the last one."
    assert cause in done.stdout.splitlines()
