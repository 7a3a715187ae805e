"""Files that are only searched: what they name is searched too, and no secret of theirs leaves the host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from remedy.probe import (
    HostState,
    Mention,
    ProbeRequest,
    Process,
    ServiceVariable,
    parse_probe,
    render_probe,
)
from remedy.probe.frames import Section, Sections
from remedy.probe.services import parse_service_environments
from remedy.values import Unknown
from tests.unit.probe.script_bench import run
from tests.unit.probe_data import SHELLS

SECRET = "do-not-tell"
LINES = f"""\
export HF_TOKEN={SECRET} NCCL_SOCKET_IFNAME=eth9
Environment="WANDB_API_KEY={SECRET} {SECRET}" "NCCL_DEBUG=INFO"
NCCL_DEBUG=WARN MY_PASSWORD='{SECRET} {SECRET}' b=c
{{"env_vars": {{"AWS_SECRET_ACCESS_KEY": "{SECRET}", "NCCL_ALGO": "Ring"}}}}
NCCL_PROXY=http://me:{SECRET}@proxy:3128
setenv SITE_TOKEN {SECRET}; setenv NCCL_PROTO LL
export HF_TOKEN={SECRET}
"""


def probe(text: str, request: ProbeRequest, shell: str) -> tuple[HostState, str]:
    """Run a rendered probe here; return the state and the bytes that left the host, unpacked."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    words = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    text = text.replace("if has base64 && has gzip", "if false")
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60, check=True)
    state = parse_probe("here", done.stdout, request)
    return state, done.stdout


def in_place(text: str, path: str, other: Path) -> str:
    """Have the probe search another file in the place of one that it searches always."""
    assert f"\n{path}\n" in text
    return text.replace(f"\n{path}\n", f"\n{other}\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_no_secret_on_a_line_that_is_sent_leaves_the_host(tmp_path: Path, shell: str) -> None:
    (tmp_path / "site.sh").write_text(LINES)
    request = ProbeRequest()
    text = in_place(render_probe(request), "/etc/bashrc", tmp_path / "site.sh")
    state, _ = probe(text, request, shell)
    assert not isinstance(state.mentions, Unknown)
    found = {m.line: m.text for m in state.mentions if m.path == str(tmp_path / "site.sh")}
    assert list(found) == [1, 2, 3, 4, 5, 6]  # the last line names nothing that jobs care for
    assert not [line for line in found.values() if SECRET in line]
    assert "NCCL_SOCKET_IFNAME=eth9" in found[1]
    assert '"NCCL_DEBUG=INFO"' in found[2]
    assert found[3].startswith("NCCL_DEBUG=WARN ")
    assert '"NCCL_ALGO": "Ring"' in found[4]
    assert found[5] == "NCCL_PROXY=http://<redacted>@proxy:3128"


@pytest.mark.parametrize("shell", SHELLS)
def test_files_that_are_named_are_searched_where_they_are_the_systems(
    tmp_path: Path, shell: str
) -> None:
    named = Path("/var/tmp") / f"remedy-test-{shell}-{os.getpid()}.env"
    named.write_text("NCCL_DEBUG=INFO\nX=1\n")
    (tmp_path / "elsewhere.env").write_text("NCCL_DEBUG=INFO\n")
    sourced = named.with_suffix(".sh")
    sourced.write_text("export NCCL_ALGO=Ring\n")
    unit = tmp_path / "unit"
    unit.write_text(
        f"[ -r {sourced} ] && . {sourced}; true\nsource /usr/share/x\n"
        f"EnvironmentFile = -{named}\nEnvironmentFile={tmp_path}/elsewhere.env\n"
        "EnvironmentFile=/var/$(touch x)\nEnvironmentFile=/etc/../proc/kmsg\nEnvironmentFile=/dev/zero\n"
    )
    request = ProbeRequest()
    try:
        state, _ = probe(in_place(render_probe(request), "/etc/bashrc", unit), request, shell)
    finally:
        named.unlink()
        sourced.unlink()
    assert not isinstance(state.mentions, Unknown)
    texts = {(m.path, m.line, m.text) for m in state.mentions}
    assert (str(named), 1, "NCCL_DEBUG=INFO") in texts
    assert (str(sourced), 1, "export NCCL_ALGO=Ring") in texts
    assert not [m for m in state.mentions if m.path.endswith("elsewhere.env")]
    assert Mention(path=str(unit), line=7, text="EnvironmentFile=/dev/zero") in state.mentions


def section(body: bytes, status: str = "ok", detail: str = "") -> Sections:
    return Sections(
        {"service-environments": Section(body, status, detail, 0.0, 0.1)}, complete=True
    )


def test_what_daemons_have_is_read_by_process() -> None:
    body = (
        b"/proc/812/environ:NCCL_SOCKET_IFNAME=eth9\0/proc/812/environ:UCX_TLS=a=b\nx\0"
        b"/proc/1/manager:GLOO_SOCKET_IFNAME=eth9\n/proc/x/environ:NCCL_A=1\0"
    )
    processes = (Process(812, 1, 812, 812, False, "S", "slurmd", 1, 1),)
    assert parse_service_environments(section(body), processes) == (
        ServiceVariable("slurmd", 812, "NCCL_SOCKET_IFNAME", "eth9"),
        ServiceVariable("slurmd", 812, "UCX_TLS", "a=b"),
        ServiceVariable("systemd", 1, "GLOO_SOCKET_IFNAME", "eth9"),
    )
    assert parse_service_environments(section(b"", "none", "no daemon"), ()) == ()


OTHER = "NCCL_DEBUG=INFO"


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    """Return the file of a folder where another has a line."""
    (tmp_path / "other.sh").write_text(f"{OTHER}\n")
    return tmp_path / "site.sh"


def reasons(site: Path, shell: str) -> dict[str, str]:
    """Return why files could not be searched, where what the others say is known."""
    request = ProbeRequest(tool_seconds=10)
    text = in_place(render_probe(request), "/etc/bashrc", site)
    text = in_place(text, "/etc/zshrc", site.with_name("other.sh"))
    state, _ = probe(text, request, shell)
    assert not isinstance(state.mentions, Unknown), state.mentions
    assert OTHER in {m.text for m in state.mentions if m.path == str(site.with_name("other.sh"))}
    assert str(site) not in {m.path for m in state.mentions}
    return {path: unknown.reason for path, unknown in state.unsearched.items()}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pipe_is_not_waited_for_and_what_the_other_files_say_is_known(
    searched: Path, shell: str
) -> None:
    os.mkfifo(searched)
    assert reasons(searched, shell) == {str(searched): "it is a fifo, and no regular file"}


@pytest.mark.parametrize("shell", ["dash", pytest.param("bash", marks=pytest.mark.full)])
def test_a_file_too_large_to_be_searched_is_left_out(searched: Path, shell: str) -> None:
    with searched.open("wb") as file:
        file.truncate(20 << 30)
    said = "it has 21474836480 bytes, which are too many"
    assert reasons(searched, shell) == {str(searched): said}


@pytest.mark.parametrize("line", ["NCCL_DEBUG=INFO\n" * 20_000, "NCCL_X=" + "x" * 2_000_000])
def test_a_file_of_which_too_much_matters_is_left_out(searched: Path, line: str) -> None:
    searched.write_text(line)
    said = "it has more lines that matter here than are read"
    assert reasons(searched, "dash") == {str(searched): said}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_file_that_bash_env_names_is_searched(shell: str) -> None:
    site = Path("/var/tmp") / f"remedy-test-{shell}-{os.getpid()}.sh"
    site.write_text(f"module() {{ :; }}\nexport {OTHER}\n")
    try:
        state, _ = run(ProbeRequest(), shell, BASH_ENV=str(site))
    finally:
        site.unlink()
    assert not isinstance(state.mentions, Unknown), state.mentions
    assert [(m.line, m.text) for m in state.mentions if m.path == str(site)] == [
        (2, f"export {OTHER}")
    ]
    assert state.unsearched == {}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_of_a_user_that_bash_env_names_is_named(tmp_path: Path, shell: str) -> None:
    (tmp_path / "site.sh").write_text(f"export {OTHER}\n")
    state, _ = run(ProbeRequest(), shell, BASH_ENV=str(tmp_path / "site.sh"))
    assert "BASH_ENV names it" in state.unsearched[str(tmp_path / "site.sh")].reason
    assert not isinstance(state.mentions, Unknown), state.mentions
    assert not [m for m in state.mentions if m.path.startswith(str(tmp_path))]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pipe_that_a_file_names_is_named(searched: Path, shell: str) -> None:
    pipe = Path("/var/tmp") / f"remedy-test-{shell}-{os.getpid()}.pipe"
    os.mkfifo(pipe)
    unit = searched.with_name("unit")
    unit.write_text(f"EnvironmentFile={pipe}\n")
    request = ProbeRequest()
    try:
        state, _ = probe(in_place(render_probe(request), "/etc/bashrc", unit), request, shell)
    finally:
        pipe.unlink()
    assert list(state.unsearched) == [str(pipe)]


@pytest.mark.parametrize("shell", SHELLS)
def test_of_a_script_that_writes_settings_comes_on_what_its_lines_depend(
    tmp_path: Path, shell: str
) -> None:
    script = tmp_path / "if-up.d" / "site"
    script.parent.mkdir()
    script.write_text(f"if [ $X = {SECRET} ]; then\n  sysctl -w net.core.somaxconn=128\nfi\n")
    request = ProbeRequest()
    text = render_probe(request).replace("/etc/network/if-", f"{tmp_path}/if-")
    state, _ = probe(text, request, shell)
    assert not isinstance(state.mentions, Unknown)
    lines = sorted((m.line, m.text) for m in state.mentions if m.path == str(script))
    assert lines == [(1, "if "), (2, "  sysctl -w net.core.somaxconn=128"), (3, "fi")]
    assert SECRET not in "".join(m.text for m in state.mentions)


@pytest.mark.parametrize("shell", SHELLS)
def test_of_a_job_of_at_the_commands_are_read_and_not_its_environment(
    tmp_path: Path, shell: str
) -> None:
    variables = f"HF_TOKEN={SECRET}; export HF_TOKEN\nX=nft\\ {SECRET}; export X\n"
    lines = f"#!/bin/sh\n{variables}cd /root\nnft flush ruleset\n"
    (tmp_path / "a0000101ba4e08").write_text(lines)
    request = ProbeRequest()
    text = render_probe(request).replace("/var/spool/at/", f"{tmp_path}/")
    state, printed = probe(text, request, shell)
    assert not isinstance(state.mentions, Unknown)
    path = str(tmp_path / "a0000101ba4e08")
    assert [(m.line, m.text) for m in state.mentions if m.path == path] == [
        (5, "nft flush ruleset")
    ]
    assert SECRET not in printed
