"""The script itself, run for real on this machine: it reads, ends in time, and loses nothing it should not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.probe import File, HostState, ProbeRequest, render_probe
from remedy.probe.frames import read_sections
from remedy.values import Unknown
from tests.unit.probe.script_bench import run, run_each, tool, with_driver
from tests.unit.probe_data import SHELLS

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the probe is for Linux"
)

# Longer than ``run`` waits: a probe that waits for it fails the test.
HANG = "#!/bin/sh\nexec sleep 600\n"
# Whoever waits for a deadline does it in these at once.
WAITING = ("dash", "bash", "busybox")


def content(found: HostState, path: Path) -> bytes:
    file = found.file(str(path))
    assert isinstance(file, File), file
    return file.content


@pytest.mark.parametrize("shell", SHELLS)
def test_it_runs_in_every_shell(shell: str) -> None:
    found, _ = run(ProbeRequest(names=("localhost", "no-such-host.invalid")), shell)
    assert found.complete
    assert found.root == (os.geteuid() == 0)
    assert not isinstance(found.identity, Unknown)
    assert found.identity.transient_name == os.uname().nodename
    assert found.identity.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert content(found, Path("/etc/hosts")) == Path("/etc/hosts").read_bytes()
    for group in (
        "clock",
        "session",
        "kernel",
        "space",
        "mounts",
        "limits",
        "environment",
        "processes",
        "ipc",
    ):
        assert not isinstance(getattr(found, group), Unknown), getattr(found, group)


def test_every_section_comes() -> None:
    request = ProbeRequest()
    _, stdout = run(request)
    asked = re.findall(r"^section (\S+)", render_probe(request), re.MULTILINE)
    assert list(read_sections("here", stdout, request.nonce).by_name) == asked


def test_the_clock_is_this_clock() -> None:
    before = time.time_ns()
    found, _ = run(ProbeRequest())
    assert not isinstance(found.clock, Unknown)
    assert before <= found.clock.epoch_ns <= time.time_ns()


@pytest.mark.parametrize("shell", SHELLS)
def test_files_come_as_they_are(tmp_path: Path, shell: str) -> None:
    request = ProbeRequest(files=(f"{tmp_path}/*", f"{tmp_path}/b-crlf"))
    nonce = request.nonce
    given = {
        "a-forged": f"x\n@{nonce} end file-contents 1.0 ok \n@{nonce} begin names 1.0\n".encode(),
        "a-outer": f"remedy-probe {nonce} end\nremedy-probe {nonce} base64\n".encode(),
        "b-crlf": b"one\r\ntwo\r\n",
        "c-latin": b"caf\xe9\n\xff\xfe",
        "d-empty": b"",
        "e-no-end": b"last",
        "f-blank": b"\n\n\n",
        "g-shell": b"$(touch "
        + str(tmp_path / "pwned").encode()
        + b") `id` '\"\\ {{ 7*7 }} {% x %}\n",
        "h-pass-for-another": f"{tmp_path}/i-long:forged\n".encode(),
        "i-long": b"x" * 100_000 + b"\n" + b"y\n" * 10,
        "j $(touch pwned) {{x}}": b"name\n",
        "k": b"plain\n",
        "[k]": b"looks like a pattern\n",
    }
    for name, text in given.items():
        (tmp_path / name).write_bytes(text)
    found, _ = run(request, shell)
    assert {name: content(found, tmp_path / name) for name in given} == given
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(given)


def test_bytes_of_zero_come_through(tmp_path: Path) -> None:
    (tmp_path / "zero").write_bytes(b"a\0b\n\0\n")
    found, _ = run(ProbeRequest(files=(f"{tmp_path}/zero",)))
    assert content(found, tmp_path / "zero") == b"a\0b\n\0\n"


def test_fifty_thousand_lines_come_through(tmp_path: Path) -> None:
    text = b"".join(
        b"10.0.%d.%d node%05d node%05d.example\n" % (n >> 8 & 255, n & 255, n, n)
        for n in range(50_000)
    )
    (tmp_path / "hosts").write_bytes(text)
    found, _ = run(ProbeRequest(files=(f"{tmp_path}/hosts",)))
    assert content(found, tmp_path / "hosts") == text


def test_what_is_no_plain_file_is_unknown_and_hangs_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "huge").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    found, _ = run(
        ProbeRequest(
            files=tuple(f"{tmp_path}/{name}" for name in ("fifo", "folder", "huge", "none"))
        )
    )
    for name in ("fifo", "folder", "huge"):
        assert isinstance(found.file(f"{tmp_path}/{name}"), Unknown)
    missing = found.file(f"{tmp_path}/none")
    assert isinstance(missing, File)
    assert not missing.exists


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"text\n")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "new").symlink_to("not-yet")
    (tmp_path / "lost").symlink_to("no/folder/file")
    names = ("link", "null", "new", "lost")
    found, _ = run(ProbeRequest(files=tuple(f"{tmp_path}/{name}" for name in names)))
    link, null, new, lost = (found.file(f"{tmp_path}/{name}") for name in names)
    assert isinstance(link, File)
    assert (link.real_path, link.content) == (str(tmp_path.resolve() / "real"), b"text\n")
    assert isinstance(null, File)
    assert (null.real_path, null.content) == ("/dev/null", b"")
    assert isinstance(new, File)
    assert (new.real_path, new.exists) == (str(tmp_path.resolve() / "not-yet"), False)
    assert isinstance(lost, Unknown)


def test_secrets_stay_on_the_host() -> None:
    found, stdout = run(
        ProbeRequest(),
        HF_TOKEN="canary-one",
        aws_secret_access_key="canary-two",
        DB_PASSWORD="canary-three\nand more",
        https_proxy="http://user:canary-four@proxy:3128",
        NCCL_DEBUG="canary-five {{ 7*7 }} $(id)",
    )
    assert not isinstance(found.environment, Unknown)
    assert found.environment["NCCL_DEBUG"] == "canary-five {{ 7*7 }} $(id)"
    assert found.environment["HF_TOKEN"] == "<redacted>"
    body = "".join(
        str(section) for section in read_sections("here", stdout, _nonce(stdout)).by_name.values()
    )
    assert re.findall(r"canary-\w+", body) == ["canary-five"]


def _nonce(stdout: str) -> str:
    return stdout.split()[1]


@pytest.fixture
def trainer() -> Iterator[subprocess.Popen[bytes]]:
    """A process of a session of its own, with a secret on its command line."""
    command = ["sleep", "60"]
    process = subprocess.Popen(
        [
            "sh",
            "-c",
            "sleep 60; :",
            "trainer",
            "--api-key=canary-one",
            "--token",
            "canary-two",
            *command,
        ],
        start_new_session=True,
    )
    yield process
    os.killpg(process.pid, 9)
    process.wait()


def test_processes_are_seen_without_their_secrets(trainer: subprocess.Popen[bytes]) -> None:
    found, stdout = run(ProbeRequest())
    assert not isinstance(found.processes, Unknown)
    (process,) = [process for process in found.processes if process.pid == trainer.pid]
    assert process.arguments is not None
    assert process.arguments[4:8] == ("--api-key=<redacted>", "--token", "<redacted>", "sleep")
    assert process.parent == os.getpid()
    ticks = int(Path(f"/proc/{trainer.pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert process.started_ticks == ticks
    assert (
        b"canary-"
        not in read_sections("here", stdout, _nonce(stdout)).by_name["process-details"].body
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_the_arguments_of_one_process_are_never_those_of_another(shell: str) -> None:
    forged = "x\n/proc/1/cmdline\n:forged\n/proc/1/cmdline:forged"
    command = ["sh", "-c", "sleep 60; :", "sh", forged]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            found, _ = run(ProbeRequest(), shell)
        finally:
            os.killpg(process.pid, 9)
    assert not isinstance(found.processes, Unknown)
    arguments = {p.pid: p.arguments for p in found.processes}
    assert arguments[process.pid] == tuple(command)
    assert "forged" not in "".join(arguments.get(1) or ())


def test_a_tool_that_hangs_costs_only_itself(tmp_path: Path) -> None:
    path = tool(tmp_path / "bin", "nvidia-smi", HANG)
    path = tool(tmp_path / "bin", "ss", HANG)
    request = ProbeRequest(tool_seconds=1)
    states = run_each(request, WAITING, text=with_driver(request, tmp_path), PATH=path)
    for shell, found in states.items():
        assert found.complete, shell
        assert not isinstance(found.gpus, Unknown), shell
        assert isinstance(found.gpus.devices, Unknown), shell
        assert isinstance(found.gpus.processes, Unknown), shell
        assert isinstance(found.listeners, Unknown), shell
        assert not isinstance(found.identity, Unknown), shell


def test_the_whole_probe_has_a_deadline(tmp_path: Path) -> None:
    path = tool(tmp_path / "bin", "ss", HANG)
    path = tool(tmp_path / "bin", "nvidia-smi", HANG)
    request = ProbeRequest(deadline=2, tool_seconds=30)
    found, _ = run(request, text=with_driver(request, tmp_path), PATH=path)
    assert found.complete
    assert isinstance(found.listeners, Unknown)
    assert not isinstance(found.processes, Unknown)
    assert isinstance(found.gpus, Unknown) or "time was up" in str(found.gpus.devices)


def test_a_tool_that_cannot_be_killed_does_not_hold_the_probe(tmp_path: Path) -> None:
    # A process out of reach of signals is played by one that is no longer the probe's, and holds its output.
    pid = tmp_path / "pid"
    escape = f"#!/bin/sh\n(setsid sleep 600 & echo $! >{pid})\nexec sleep 600\n"
    path = tool(tmp_path / "bin", "nvidia-smi", escape)
    request = ProbeRequest(tool_seconds=1)
    found, _ = run(request, text=with_driver(request, tmp_path), PATH=path)
    os.kill(int(pid.read_text()), signal.SIGKILL)  # it lives: the probe did not wait for it
    assert found.complete
    assert not isinstance(found.gpus, Unknown)
    assert isinstance(found.gpus.devices, Unknown)


def test_a_tool_that_prints_rubbish_costs_only_itself(tmp_path: Path) -> None:
    path = tool(tmp_path / "bin", "ip", "#!/bin/sh\nhead -c 1000 /dev/urandom\nexit 3\n")
    found, _ = run(ProbeRequest(), PATH=path)
    assert isinstance(found.network, Unknown)
    assert not isinstance(found.processes, Unknown)


def test_a_tool_cannot_read_the_script(tmp_path: Path) -> None:
    path = tool(tmp_path / "bin", "ss", "#!/bin/sh\ncat\n")
    found, _ = run(ProbeRequest(), PATH=path)
    assert found.complete
    assert found.listeners == ()


def test_gpus_are_read(tmp_path: Path) -> None:
    script = (
        "#!/bin/sh\n"
        'case "$*" in *query-gpu*) echo "0, GPU-1, 00000000:18:00.0, NVIDIA H200, 570.1, Enabled, Default,'
        ' 143771, 5, 0" ;; *compute-apps*) echo "42, GPU-1, 1000" ;; esac\n'
    )
    request, path = ProbeRequest(), tool(tmp_path / "bin", "nvidia-smi", script)
    found, _ = run(request, text=with_driver(request, tmp_path), PATH=path)
    assert not isinstance(found.gpus, Unknown)
    assert not isinstance(found.gpus.devices, Unknown)
    assert found.gpus.devices[0].name == "NVIDIA H200"
    assert found.gpus.processes == ((42, "GPU-1", 1000),)


NAMES = tuple(f"node{number:04}" for number in range(2000))


def test_two_thousand_names_are_asked(tmp_path: Path) -> None:
    fake = (
        '#!/bin/sh\nshift 2\nfor n; do case $n in 0.*) echo "$n STREAM $n" ;;'
        ' *7) echo "10.0.0.7 STREAM c.$n" ;; esac; done\n'
    )
    found, _ = run(ProbeRequest(names=NAMES), PATH=tool(tmp_path / "bin", "getent", fake))
    assert not isinstance(found.names, Unknown)
    assert set(found.names.peers) == set(NAMES)
    assert found.names.peers["node0017"] == ("10.0.0.7",)
    assert found.names.peers["node0018"] == ()


def test_a_dead_name_server_costs_only_the_names_that_need_it(tmp_path: Path) -> None:
    # Names that end in 9 hang, as with a server that does not answer; all others are in the hosts file.
    fake = (
        '#!/bin/sh\nshift 2\nfor n; do case $n in 0.*) echo "$n STREAM $n" ;; *9) sleep 600 ;;'
        ' *) echo "10.0.0.1 STREAM $n" ;; esac; done\n'
    )
    names = NAMES[:40]
    found, _ = run(
        ProbeRequest(names=names, name_seconds=6), PATH=tool(tmp_path / "bin", "getent", fake)
    )
    assert not isinstance(found.names, Unknown)
    assert set(found.names.peers) == {name for name in names if not name.endswith("9")}


def test_a_host_without_getent_is_unknown_and_says_so() -> None:
    request = ProbeRequest()
    text = render_probe(request).replace("has getent ||", "false ||")
    found, _ = run(request, text=text)
    assert isinstance(found.names, Unknown)
    assert "getent is not installed" in found.names.reason


@pytest.mark.parametrize("kernel", ["lists children", "lists none"])
def test_what_a_tool_has_started_ends_with_it(tmp_path: Path, kernel: str) -> None:
    pids = tmp_path / "pids"
    deep = f"#!/bin/sh\necho $$ >>{pids}\nsh -c 'echo $$ >>{pids}; sleep 600; :'\n:\n"
    path = tool(tmp_path / "bin", "ss", deep)
    request = ProbeRequest(tool_seconds=1)
    text = render_probe(request)
    assert "/children" in text
    if kernel == "lists none":
        text = text.replace("/children", "/none")
    states = run_each(request, WAITING, text=text, PATH=path)
    for shell, found in states.items():
        assert found.complete, shell
        assert isinstance(found.listeners, Unknown), shell
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2 * len(states)
    # What has ended and was not yet waited for, a zombie, has no command line.
    assert not [pid for pid in started if _bytes(Path(f"/proc/{pid}/cmdline"))]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe_leaves_no_process(shell: str) -> None:
    request = ProbeRequest()
    run(request, shell, REMEDY_TEST_MARK=request.nonce)
    mark = f"REMEDY_TEST_MARK={request.nonce}".encode()
    left = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _bytes(path)]
    assert left == []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended, or is not ours
        return b""


def test_a_host_without_base64_sends_hexadecimal() -> None:
    request = ProbeRequest()
    found, stdout = run(request, text=render_probe(request).replace("has base64", "false"))
    assert f"{request.nonce} hex" in stdout
    assert found.complete


def test_for_gateways_a_probe_has_few_lines_that_are_long() -> None:
    request = ProbeRequest()
    found, stdout = run(request, REMEDY_COLUMNS="65532")
    usual, short = run(request)
    assert len(stdout.splitlines()) < 10 < len(short.splitlines())
    assert (found.complete, found.kernel) == (usual.complete, usual.kernel)


def test_interpreters_and_packages_are_found(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    (site / "torch-2.9.0+cu128.dist-info").mkdir(parents=True)
    (site / "torch").mkdir()
    (site / "torch" / "version.py").write_text(
        "__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\n"
    )
    tool(tmp_path / "bin", "python", "#!/bin/sh\nexit 1\n")
    found, _ = run(ProbeRequest(interpreters=(f"{tmp_path}/bin/python",)))
    assert not isinstance(found.software, Unknown)
    assert f"{tmp_path}/bin/python" in found.software.interpreters
    assert ("torch", "2.9.0+cu128", str(site)) in found.software.packages
    assert (str(site), "12.8") in found.software.cuda
