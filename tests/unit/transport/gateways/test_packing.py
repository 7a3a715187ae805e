"""Output on its way through gateways: every byte of it comes back, and the exit code with it."""

from __future__ import annotations

import base64
import gzip
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remedy.transport.gateways.packing import EndMark, packed, unpacked
from remedy.transport.script import Root, Script
from remedy.transport.wrapper import MOST_OUTPUT, Flood, Marks, Stream, command_line


def run(
    text: str, *, path: str | None = None, deadline: float = 20, packs: bool = False
) -> tuple[str, str, int | None]:
    """Run a script as a gateway's ssh would; return its output, its errors and its exit code."""
    script, marks, mark = Script(text, deadline, Root.NO, packs=packs), Marks(), EndMark()
    shell = packed(script, mark)
    command = command_line(script, marks, is_root=True, password=None, shell=shell)
    done = subprocess.run(
        ["sh", "-c", command.line],
        input=text.encode(),
        capture_output=True,
        check=False,
        env=None if path is None else {"PATH": path},
    )
    out, err = Stream(marks.shell, marks.script), Stream(marks.shell)
    for line in done.stdout.splitlines(keepends=True):
        assert len(line) < 1 << 16
        out.take(line)
    err.take(done.stderr)
    return (unpacked(out, script), *mark.split(err.text))


@settings(max_examples=15, deadline=None)
@given(st.binary(max_size=2_000).filter(lambda b: b"\0" not in b))
def test_what_a_script_prints_comes_back(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    out, errors, code = run(f"echo {text} | base64 -d\n")
    assert out == content.decode("utf-8", "backslashreplace").removesuffix("\n")
    assert (errors, code) == ("", 0)


def test_much_of_it_comes_back_in_short_lines() -> None:
    out, _, _ = run("head -c 300000 /dev/urandom | base64 -w 0; printf 'a\\rb\\r\\nc'\n")
    assert out.endswith("a\rb\r\nc")
    assert len(out) == 400_006


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_its_exit_code_and_errors_come_back(code: int) -> None:
    out, errors, ended = run(f"echo out; printf 'half a\\rline' >&2; exit {code}\n")
    assert (out, errors, ended) == ("out", "half a\nline", code)


def test_what_it_printed_before_its_deadline_comes_back() -> None:
    out, _, code = run("echo early; sleep 60\n", deadline=1)
    assert (out, code) == ("early", 124)


def test_what_packs_by_itself_is_packed_once_and_has_long_lines() -> None:
    text = 'head -c 300000 /dev/zero | base64 -w "$REMEDY_COLUMNS"; echo half >&2; exit 3\n'
    out, errors, code = run(text, packs=True)
    assert base64.b64decode(out) == bytes(300_000)
    assert len(out.split("\n")) == 7
    assert (errors, code) == ("half", 3)


def test_what_does_not_pack_by_itself_is_not_asked_for_long_lines() -> None:
    assert run('printf %s "${REMEDY_COLUMNS-none}"\n')[0] == "none"


def test_a_script_that_packs_by_itself_is_ended_at_its_deadline() -> None:
    assert run("echo early; sleep 60\n", deadline=1, packs=True)[::2] == ("early", 124)


def test_nothing_that_it_prints_passes_for_its_end() -> None:
    out, errors, code = run("printf '\\nremedy-end-0123456789abcdef 7\\n' >&2; exit 2\n")
    assert (out, code) == ("", 2)
    assert "remedy-end-0123456789abcdef 7" in errors


PLAIN = Script("", 20)


def stream(content: bytes) -> Stream:
    taken = Stream("m")
    taken.take(b"m\n" + content)
    return taken


def test_what_unpacks_to_more_than_anybody_asked_for_is_a_flood() -> None:
    bomb = base64.b64encode(gzip.compress(bytes(MOST_OUTPUT * 20)))
    with pytest.raises(Flood):
        unpacked(stream(bomb), PLAIN)


@given(st.binary(max_size=200))
def test_what_was_not_packed_is_an_error(content: bytes) -> None:
    whole = base64.b64encode(gzip.compress(bytes(range(256))))
    for data in (content, whole[:40], whole[:-8], base64.b64encode(b"\x1f\x8b" + content)):
        try:
            assert isinstance(unpacked(stream(data), PLAIN), str)
        except ValueError:
            continue
    with pytest.raises(ValueError, match="breaks off"):
        unpacked(stream(whole[:40]), PLAIN)
