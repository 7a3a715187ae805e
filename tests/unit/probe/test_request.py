"""The script that is sent: everything from the request stays data in it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from pydantic import ValidationError

from remedy.probe import ProbeRequest, render_probe, searched, sources
from remedy.probe.request import mark

EVIL = "/x/$(touch pwned)`id`'\"{{ 7*7 }}\\"


def test_a_request_has_a_fresh_nonce() -> None:
    assert ProbeRequest().nonce != ProbeRequest().nonce
    assert len(ProbeRequest().nonce) == 32


@pytest.mark.parametrize(
    "name", ["", "-s", "a b", "a;b", "$(id)", "a\n", "ü", "*", "a" * 254, "{{x}}"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        ProbeRequest(names=(name,))


@pytest.mark.parametrize("path", ["", "relative", "/a\nb", "/a:b"])
def test_what_is_no_absolute_path_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        ProbeRequest(files=(path,))
    with pytest.raises(ValidationError):
        ProbeRequest(interpreters=(path,))


def test_a_name_and_a_path_are_asked_for_once() -> None:
    request = ProbeRequest(names=("a", "b", "a"), files=("/etc/hosts", "/x", "/x"))
    assert request.names == ("a", "b")
    assert len(set(request.all_files())) == len(request.all_files())


def test_marks_are_all_different() -> None:
    assert [mark(at) for at in (0, 1, 255, 256, 65536)] == [
        "0.0.0.0",  # noqa: S104
        "0.0.0.1",
        "0.0.0.255",
        "0.0.1.0",
        "0.1.0.0",
    ]
    assert len({mark(at) for at in range(3000)}) == 3000


def test_the_text_of_the_request_is_quoted() -> None:
    text = render_probe(ProbeRequest(files=(EVIL,), interpreters=(EVIL,)))
    assert "files=" in text
    for name in ("files", "interpreters"):
        # The shell itself is asked what the variable holds.
        lines = text.split("\nstop_after", 1)[1].split("\nLC_ALL=C")[0].split("\n")
        script = "\n".join(["x=", *lines[1:], f'printf %s "${name}"'])
        told = subprocess.run(
            ["sh", "-s"], input=script, capture_output=True, text=True, check=True
        ).stdout
        assert told.split("\n")[-1] == EVIL


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox"])
def test_every_shell_can_read_the_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    done = subprocess.run(
        command, input=render_probe(ProbeRequest()), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_is_sent_without_its_comments() -> None:
    text = render_probe(ProbeRequest())
    assert not [line for line in text.split("\n") if line.startswith(("#", " "))]
    # Every host gets it and its shell reads all of it: 10 MB a KiB for 10,000 hosts.
    assert len(text) < 72 << 10


def test_the_lists_name_nothing_twice() -> None:
    lists = {
        name: items
        for module in (sources, searched)
        for name, items in vars(module).items()
        if isinstance(items, tuple)
    }
    assert {"FILES", "SCAN_FILES", "SYSCTLS", "UNITS", "PROGRAMS"} <= set(lists)
    for name, items in lists.items():
        assert len(set(items)) == len(items), name
