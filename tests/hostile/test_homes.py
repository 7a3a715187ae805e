"""A probe reads in homes what their users may read, says nothing else of them, and ends whatever they do."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.probe import File, HostState, ProbeRequest, parse_probe, render_probe
from remedy.values import Unknown
from tests.hostile import racer
from tests.unit.probe_data import SHELLS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it acts as another user: it needs root")

SECRET = "NCCL_ROOTS=what-no-user-may-read"
OWN = "NCCL_DEBUG=INFO"
# Seconds; a tool has half a second in these probes, and a hang is one of minutes.
PATIENCE = 40.0
SWAPS = 8
HOLDS_THE_PIPE = 'setsid sleep 300 & echo "$!" >>{log}.pids\n'


class Site:
    """A host with one user's home, a file that is root's alone, and an account whose home that is."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir(mode=0o755)
        os.chown(self.home, racer.USER, racer.USER)
        self.secret = folder / "secret"
        self.secret.write_text(SECRET + "\n")
        self.secret.chmod(0o600)
        self.accounts = folder / "passwd"
        self.accounts.write_text(
            f"root:x:0:0::/root:/bin/sh\nann:x:{racer.USER}:{racer.USER}::{self.home}:/bin/sh\n"
        )
        self.log = folder / "log"

    def has(self, name: str, text: str = OWN + "\n") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.chown(path, racer.USER, racer.USER)
        return path

    def links(self, name: str, target: Path) -> None:
        (self.home / name).symlink_to(target)
        os.lchown(self.home / name, racer.USER, racer.USER)

    def user_acts(self, text: str) -> str:
        """Have the user do something as each command that runs with the user's rights; return the PATH."""
        tools = self.folder / "tools"
        tools.mkdir()
        real = shutil.which("setpriv")
        program = tools / "setpriv"
        program.write_text(f'#!/bin/sh\n{text.format(log=self.log)}exec {real} "$@"\n')
        program.chmod(0o755)
        return f"{tools}:{os.environ['PATH']}"

    def probe(self, shell: str = "sh", **environment: str) -> tuple[HostState, str]:
        """Probe here; return the state, and what left the host, unpacked."""
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        request = ProbeRequest(user="ann", tool_seconds=1)
        text = render_probe(request).replace("/etc/passwd", str(self.accounts))
        done = subprocess.run(
            [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"],
            input=text.replace("if has base64 && has gzip", "if false"),
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=PATIENCE,
            check=True,
        )
        packed = done.stdout.partition(" base64\n")[2].partition("\n\nremedy-probe")[0]
        return parse_probe("here", done.stdout, request), base64.b64decode(packed).decode("latin-1")


@pytest.fixture
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="homes-") as base:
        Path(base).chmod(0o755)
        made = Site(Path(base))
        yield made
        pids = Path(f"{made.log}.pids")
        for pid in pids.read_text().split() if pids.exists() else ():
            os.kill(int(pid), 9)


def mentioned(state: HostState, path: Path) -> list[str]:
    assert not isinstance(state.mentions, Unknown), state.mentions
    return [m.text for m in state.mentions if m.path == str(path)]


def content(state: HostState, path: Path) -> bytes | str:
    file = state.file(str(path))
    return file.content if isinstance(file, File) else file.reason


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_user_may_read_comes_whole(site: Site, shell: str) -> None:
    conf, profile = site.has(".nccl.conf", "NCCL_A=caf\x80\nNCCL_B"), site.has(".bashrc")
    state, _ = site.probe(shell)
    assert content(state, conf) == conf.read_bytes()
    assert mentioned(state, profile) == [OWN]
    assert not isinstance(state.names, Unknown)
    assert state.names.user == "ann"


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_user_may_not_read_stays_on_the_host(site: Site, shell: str) -> None:
    site.links(".nccl.conf", site.secret)
    site.links(".bashrc", site.secret)
    os.link(site.secret, site.home / ".zshrc")
    named = Path(f"/var/tmp/remedy-test-{os.getpid()}.sh")
    named.write_text(SECRET + "\n")
    named.chmod(0o600)
    site.has(".profile", f". {named}\n{OWN}\n")
    try:
        state, said = site.probe(shell)
    finally:
        named.unlink()
    assert SECRET.partition("=")[2] not in said
    assert "its user may not read it" in str(content(state, site.home / ".nccl.conf"))
    assert mentioned(state, site.home / ".profile") == [f". {named}", OWN]


def test_a_home_that_is_not_roots_is_read_by_nobody_better(site: Site) -> None:
    """sudo can leave HOME as the user has it, or somebody else's."""
    site.links(".nccl.conf", site.secret)
    site.links(".bashrc", site.secret)
    _, said = site.probe(HOME=str(site.home))
    assert SECRET.partition("=")[2] not in said


def test_a_user_who_swaps_files_for_links_while_they_are_read_reaches_nothing(site: Site) -> None:
    site.has(".nccl.conf")
    site.has(".bashrc")
    swap = (
        "import os, sys\nn = 0\n"
        "while os.getppid() == int(sys.argv[1]):\n"
        "  for name in ('.nccl.conf', '.bashrc'):\n"
        "    n += 1\n    os.symlink('../secret', f'x{n}')\n    os.rename(f'x{n}', name)\n"
        f"    open('y', 'w').write({OWN + chr(10)!r})\n    os.rename('y', name)\n"
    )
    racing = subprocess.Popen(
        ["python3", "-c", swap, str(os.getpid())], cwd=site.home, user=racer.USER, group=racer.USER
    )
    try:
        for _ in range(SWAPS):
            _, said = site.probe()
            assert SECRET.partition("=")[2] not in said
    finally:
        racing.kill()
        racing.wait()


def test_pipes_in_a_home_and_a_library_of_the_users_keep_nobody_waiting(site: Site) -> None:
    for name in (".nccl.conf", ".bashrc", ".local/lib/python3.11/site-packages/torch/version.py"):
        site.has(name).unlink()
        os.mkfifo(site.home / name)
    began = time.monotonic()
    state, _ = site.probe(HOME=str(site.home))
    assert time.monotonic() - began < PATIENCE / 2
    assert state.complete
    assert "not a regular file" in str(content(state, site.home / ".nccl.conf"))


# A search of 20 GB takes a shell its whole time; bash stands for no other way of it.
@pytest.mark.parametrize("shell", ["dash", pytest.param("bash", marks=pytest.mark.full)])
def test_a_file_of_a_home_that_cannot_be_searched_is_named_and_the_others_are_known(
    site: Site, shell: str
) -> None:
    profile = site.has(".profile")
    os.mkfifo(site.home / ".zshrc")
    with (site.home / ".bashrc").open("wb") as file:
        file.truncate(20 << 30)
    (site.home / ".zshenv").write_text(OWN + "\n" + "NCCL_DEBUG=INFO\n" * 50_000)
    state, _ = site.probe(shell)
    assert mentioned(state, profile) == [OWN]
    reasons = {Path(path).name: unknown.reason for path, unknown in state.unsearched.items()}
    assert reasons == {
        ".zshrc": "it is a fifo, and no regular file",
        ".bashrc": "it has 21474836480 bytes, which are too many",
        ".zshenv": f"it has {len(OWN) + 1 + 16 * 50_000} bytes, which are too many",
    }


def test_a_home_of_which_too_much_matters_is_named_as_a_whole(site: Site) -> None:
    for name in (".bashrc", ".profile", ".zshenv", ".zshrc", ".zprofile", ".zlogin"):
        site.has(name, "NCCL_DEBUG=INFO\n" * 3_500)
    state, _ = site.probe()
    assert not isinstance(state.mentions, Unknown)
    assert list(state.unsearched) == [str(site.home)]


def test_a_user_who_holds_on_to_the_pipe_keeps_nobody_waiting(site: Site) -> None:
    """What has a user's rights can be taken over by that user, who may start something from it that stays."""
    conf = site.has(".nccl.conf")
    site.has(".bashrc")
    state, _ = site.probe(PATH=site.user_acts(HOLDS_THE_PIPE))
    assert Path(f"{site.log}.pids").exists()
    assert state.complete
    assert "its user may not read it" in str(content(state, conf))
    assert content(state, Path("/etc/hosts")) == Path("/etc/hosts").read_bytes()


def test_a_command_with_a_users_rights_has_nothing_of_roots(site: Site) -> None:
    site.has(".bashrc")
    acts = "env >>{log}; ls -l /proc/self/fd >>{log}; ps -o sid= -p $$ >>{log}\n"
    site.probe(PATH=site.user_acts(acts), REMEDY_CANARY="roots-own")
    seen = site.log.read_text()
    assert "PATH=" in seen
    assert "roots-own" not in seen
    assert not [
        line for line in seen.splitlines() if "-> /dev/" in line and "/dev/null" not in line
    ]


def test_a_user_can_say_nothing_of_another_file(site: Site) -> None:
    site.has(".nccl.conf")
    site.has(".bashrc")
    lines = (
        "/etc/profile:7:NCCL_FORGED=1",
        "/etc/hosts:6.6.6.6 gpu01",
        "/etc/nccl.conf:NCCL_FORGED=1",
    )
    forged = "".join(f"echo '{line}'\n" for line in lines)
    state, said = site.probe(PATH=site.user_acts(forged))
    assert "6.6.6.6" in said
    assert content(state, Path("/etc/hosts")) == Path("/etc/hosts").read_bytes()
    assert not isinstance(state.mentions, Unknown)
    assert not [m for m in state.mentions if "FORGED" in m.text]
    assert "FORGED" not in str(content(state, Path("/etc/nccl.conf")))


def test_no_process_is_started_for_a_home_without_such_files(site: Site) -> None:
    path = site.user_acts('printf "%s\\n" "$*" >>{log}\n')
    site.probe(PATH=path)
    assert "getent" in site.log.read_text()  # names are asked for as the user
    assert "grep" not in site.log.read_text()
    site.has(".bashrc")
    site.probe(PATH=path)
    assert site.log.read_text().count("grep") == 1


def test_the_users_command_is_no_roots(site: Site) -> None:
    """The test can fail: what the user's command reads is what that user may."""
    site.secret.chmod(0o644)
    site.links(".nccl.conf", site.secret)
    state, said = site.probe()
    assert SECRET in said
    assert content(state, site.home / ".nccl.conf") == site.secret.read_bytes()
