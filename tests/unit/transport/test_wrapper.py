"""What comes back of a script, whatever a login shell prints before it; the wrapper is run by a real sh."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.transport.failures import refusal_of_sudo
from remedy.transport.script import Root, Script
from remedy.transport.wrapper import (
    FORGETS,
    MOST_NOISE,
    MOST_OUTPUT,
    NO_SUDO,
    Flood,
    Marks,
    Stream,
    command_line,
)

MARKS = Marks("mark-of-the-shell", "mark-of-the-script", "mark-of-sudo")
SCRIPT = Script("echo out; echo err >&2; id -u", deadline=20, root=Root.REQUIRED)


def ran(
    path: Path, script: Script, *, is_root: bool = False, password: str | None = None
) -> tuple[Stream, Stream, int]:
    """Run the wrapper as a login shell would that prints before it, with only the tools in ``path``."""
    command = command_line(script, MARKS, is_root=is_root, password=password)
    noisy = f"printf 'a greeting'; echo warned >&2; {command.line}"
    done = subprocess.run(
        ["/bin/sh", "-c", noisy],
        input=command.content(with_password=True),
        capture_output=True,
        check=False,
        env={"PATH": str(path)},
    )
    out, err = Stream(MARKS.shell, MARKS.script, MARKS.ask), Stream(MARKS.shell)
    out.take(done.stdout)
    err.take(done.stderr)
    return out, err, done.returncode


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder with what the wrapper needs, an ``id`` of a common user and no sudo."""
    for name in ("sh", "timeout", "cat", "tr", "true", "printf"):  # mksh has none of its own
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    program(tmp_path, "id", "echo 1000")
    return tmp_path


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_as_root_the_script_runs_and_the_greeting_is_no_part_of_its_answer(tools: Path) -> None:
    out, err, code = ran(tools, SCRIPT, is_root=True)
    assert (out.text, err.text, code) == ("out\n1000", "err", 0)
    assert (out.noise, err.noise) == (b"a greeting\n", b"warned\n\n")
    assert out.shell
    assert out.script


@pytest.mark.parametrize("password", [None, "s3cret"])
def test_without_sudo_the_reason_comes_and_the_script_does_not_begin(
    tools: Path, password: str | None
) -> None:
    out, err, code = ran(tools, SCRIPT, password=password)
    assert (out.text, code) == ("", 1)
    assert NO_SUDO in err.text
    assert out.shell
    assert not out.script


def test_what_sudo_says_comes_on_one_line(tools: Path) -> None:
    program(tools, "sudo", "echo 'sudo: sorry,' >&2; echo 'you must have a tty' >&2; exit 1")
    out, err, code = ran(tools, SCRIPT)
    assert (err.text, code) == ("remedy: sudo: sorry, you must have a tty", 1)
    assert not out.script


def test_with_a_password_that_sudo_accepts_the_script_begins(tools: Path) -> None:
    """This sudo wants the password on its standard input, and keeps nothing of it."""
    program(
        tools,
        "sudo",
        'case "$*" in *-S*) IFS= read -r p; [ "$p" = s3cret ] || exit 1; '
        'while [ "$1" != "" ]; do case $1 in -p) shift 2;; -*) shift;; *) break;; esac; done; exec "$@";; '
        "*) exit 1;; esac",
    )
    out, _, code = ran(tools, SCRIPT, password="s3cret")
    assert (out.text, code) == ("out\n1000", 0)
    assert out.script


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox", "mksh", "ksh93"])
@pytest.mark.parametrize("release", ["0.2.5", "0.2.10"])
def test_a_sudo_that_reads_on_after_the_password_takes_no_line_of_the_script(
    tools: Path, release: str, shell: str
) -> None:
    """A stand-in for sudo-rs: before 0.2.7 it read up to 8 KiB, and what came with the password was lost."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tools / "sh").unlink()
    program(tools, "sh", f'exec {shutil.which(shell)} {"sh" if shell == "busybox" else ""} "$@"')
    for name in ("head", "rm", "touch"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    read = "p=$(head -c 8192 | head -n 1)" if release == "0.2.5" else "IFS= read -r p"
    program(
        tools,
        "sudo",
        f"""
login={tools}/login asks='' only=''
while :; do
    case $1 in
    -V) echo sudo-rs {release}; exit ;;
    -k) only=yes; [ $# -gt 1 ] || {{ rm -f $login; exit; }} ;;
    -S) asks=yes ;;
    -p) shift ;;
    -n) [ "$only" = '' ] && [ -e $login ] || {{ echo 'interactive authentication is required' >&2; exit 1; }} ;;
    *) break ;;
    esac
    shift
done
if [ "$asks" ]; then
    {read}
    [ "$p" = s3cret ] || {{ echo 'Authentication failed, try again.' >&2; exit 1; }}
fi
[ "$1" != -v ] || {{ touch $login; exit; }}
exec "$@"
""",
    )
    out, _, code = ran(tools, SCRIPT, password="s3cret")
    assert (out.text, code) == ("out\n1000", 0)
    assert not (tools / "login").exists()
    _, err, code = ran(tools, SCRIPT, password="s3cre")
    assert (err.text, code) == ("remedy: Authentication failed, try again.", 1)
    (tools / "touch").unlink()  # no login is remembered
    out, err, code = ran(tools, SCRIPT, password="s3cret")
    is_late = release == "0.2.10"
    assert (out.text, code, out.script) == (("out\n1000", 0, True) if is_late else ("", 1, False))
    assert (FORGETS in err.text) is not is_late


def test_where_root_is_only_preferred_it_runs_as_it_is(tools: Path) -> None:
    script = Script(SCRIPT.text, deadline=20, root=Root.PREFERRED)
    assert ran(tools, script)[0].text == "out\n1000"
    program(tools, "sudo", "echo sudo: no tty >&2; echo is there >&2; exit 1")
    out, err, code = ran(tools, script)
    assert (out.text, code) == ("out\n1000", 0)
    assert err.text == "remedy: sudo: no tty is there\nerr"
    assert refusal_of_sudo(err.text) == "sudo: no tty is there"


@given(
    noise=st.binary(max_size=40),
    data=st.binary(max_size=60),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_it_does_not_matter_how_the_bytes_come_in_pieces(
    noise: bytes, data: bytes, cuts: list[int]
) -> None:
    asked = len(data) % 2 == 1
    between = b"mark-of-sudo\n" if asked else b""
    whole = noise + b"\nmark-of-the-shell\n" + between + b"mark-of-the-script\n" + data
    stream = Stream(MARKS.shell, MARKS.script, MARKS.ask)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    for start, end in pairwise(places):
        stream.take(whole[start:end])
    assert stream.text == data.decode("utf-8", "backslashreplace").removesuffix("\n")
    assert stream.noise == noise + b"\n"
    assert stream.script
    assert stream.asked == asked


def test_a_shell_that_prints_without_end_is_a_flood() -> None:
    stream = Stream(MARKS.shell, MARKS.script)
    stream.take(b"n" * MOST_NOISE)
    with pytest.raises(Flood, match="login shell printed 256 KiB"):
        stream.take(b"n")


def test_a_script_that_prints_without_end_is_a_flood() -> None:
    stream = Stream(MARKS.shell, MARKS.script)
    stream.take(b"mark-of-the-shell\nmark-of-the-script\n" + b"o" * MOST_OUTPUT)
    with pytest.raises(Flood, match="the script printed more than 4 MiB"):
        stream.take(b"o")


def test_what_came_without_a_mark_is_kept_for_the_message() -> None:
    stream = Stream(MARKS.shell, MARKS.script)
    stream.take(b"This account is currently not available.\n")
    assert stream.text == "This account is currently not available."
    assert not stream.shell


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox", "mksh", "ksh93"])
def test_a_long_script_is_read_in_blocks(tools: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tools / "sh").unlink()
    program(tools, "sh", f'exec {shutil.which(shell)} {"sh" if shell == "busybox" else ""} "$@"')
    count = "while read -r key value; do [ $key != syscr: ] || echo $value; done </proc/$$/io"
    filling = "x='a line of a script'\n" * 2500
    out, _, code = ran(tools, Script(f"{filling}{count}", 20, Root.NO))
    assert (code, int(out.text) < 1000) == (0, True), out.text
