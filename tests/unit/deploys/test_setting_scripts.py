"""The scripts that have logind and dockerd read their files again, run by sh in a folder that plays a host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.apply import script
from remedy.deploys.docker_shm import DAEMON, DockerShmSpec
from remedy.deploys.logind import PATH, TEXT, LogindSpec
from remedy.plan import CommandAction, sha256
from tests.unit.deploys.limits_bench import host, planned
from tests.unit.deploys.memory_bench import memory_host, plan_of

MIB = 1 << 20


class SettingHost:
    """A folder with what a script looks at, programs that only play theirs, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.moved = {
            "/var/run/docker.pid": "pid",
            "/var/run/docker.sock": "sock",
            "/run/systemd/system": "systemd",
        }
        self.library = ""
        self.environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        (folder / "bin").mkdir()

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def move(self, path: str, name: str) -> Path:
        """Let a path of the script lead into the folder."""
        self.moved[path] = name
        return self / name

    def has_library(self) -> None:
        """Let scripts find what they find on a host: the functions of remedy/apply/host, and a folder."""
        root = self / "root"
        root.mkdir()
        lines = ["RUN=r1 NONCE=n", f"ROOT={root}", f"LOG={self / 'log'}", "BY=x", script._library()]
        self.library = "\n".join([*lines, f"DIR={root}"])

    def program(self, name: str, *lines: str) -> None:
        path = self / "bin" / name
        path.write_text("\n".join(("#!/bin/sh", f"cd {self.folder}", *lines, "")))
        path.chmod(0o755)

    def sh(self, text: str) -> subprocess.CompletedProcess[str]:
        for path, name in self.moved.items():
            text = text.replace(path, str(self / name))
        return subprocess.run(
            ["sh", "-c", f"{self.library}\n{text}"],
            capture_output=True, text=True, check=False, env=self.environment, cwd="/",
        )  # fmt: skip

    def looks(self, action: CommandAction) -> str:
        return self.sh(action.observe).stdout.strip()

    def lines(self, name: str) -> list[str]:
        """Return what a program noted, and forget it."""
        path = self / name
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found


# --- logind ---

RELOAD, RESTART = "kill --signal=HUP systemd-logind.service", "restart systemd-logind.service"
OTHER = b"[Login]\nKillUserProcesses=no\n"


def logind_action(before: bytes | None = None) -> CommandAction:
    state = host({} if before is None else {PATH: before}, gpu=True)
    (change,) = planned(state, LogindSpec(), "logind").changes
    assert isinstance(change.action, CommandAction)
    return change.action


@pytest.fixture
def logind(tmp_path: Path) -> SettingHost:
    """A host whose logind reads its drop-in file when it is asked, unless it is ``deaf`` or ``dead``."""
    host = SettingHost(tmp_path)
    host.has_library()
    host.move(PATH.rpartition("/")[0], "conf.d")
    host.program(
        "systemctl",
        'echo "$*" >>asked',
        f'case "$*" in "{RELOAD}") [ ! -e deaf ] || exit 0 ;; "{RESTART}") ;; *) exit 1 ;; esac',
        "[ ! -e dead ] || exit 1",
        "echo true >state",
        "! grep -qx RemoveIPC=no conf.d/*.conf 2>/dev/null || echo false >state",
    )
    host.program(
        "busctl",
        'case "$*" in "get-property org.freedesktop.login1 /org/freedesktop/login1 "*" RemoveIPC") ;;',
        "*) exit 1 ;; esac",
        'echo "b $(cat state)"',
    )
    host.program("sleep", 'echo "$1" >>slept')
    (host / "state").write_text("true\n")
    return host


@pytest.mark.parametrize("before", [None, OTHER])
@pytest.mark.parametrize("deaf", [False, True])
def test_logind_has_the_setting_when_the_step_is_over_and_after_it_was_taken_back(
    logind: SettingHost, before: bytes | None, deaf: bool
) -> None:
    action = logind_action(before)
    drop_in = logind / "conf.d" / "99-remedy.conf"
    if before is not None:
        drop_in.parent.mkdir()
        drop_in.write_bytes(before)
    if deaf:
        (logind / "deaf").touch()
    assert logind.looks(action) == action.before
    done = logind.sh(action.do)
    assert (done.returncode, done.stderr) == (0, "")
    assert (drop_in.read_bytes(), drop_in.stat().st_mode & 0o777) == (TEXT, 0o644)
    assert [path.name for path in drop_in.parent.iterdir()] == [drop_in.name]
    assert (logind / "state").read_text() == "false\n"
    # A restart is for a logind that does not hear the signal.
    assert logind.lines("asked") == ([RELOAD, RESTART] if deaf else [RELOAD])
    assert logind.looks(action) == action.after
    assert logind.sh(action.undo).returncode == 0
    assert (drop_in.read_bytes() if drop_in.exists() else None) == before
    assert (logind / "state").read_text() == "true\n"
    assert logind.looks(action) == action.before


def test_a_logind_that_never_has_the_setting_is_a_failure_after_some_seconds(
    logind: SettingHost,
) -> None:
    (logind / "dead").touch()
    assert logind.sh(logind_action().do).returncode != 0
    assert logind.lines("asked") == [RELOAD, RESTART]
    waited = list(map(float, logind.lines("slept")))
    assert all(0 < seconds <= 0.5 for seconds in waited)
    assert 2 <= sum(waited) <= 20


def test_a_logind_that_takes_its_time_is_waited_for(logind: SettingHost) -> None:
    (logind / "dead").touch()
    logind.program("sleep", "echo x >>slept", "[ $(wc -l <slept) -lt 5 ] || echo false >state")
    assert logind.sh(logind_action().do).returncode == 0
    assert (len(logind.lines("slept")), logind.lines("asked")) == (5, [RELOAD])


# --- dockerd ---

SITE = b'{\n    "log-driver": "journald"\n}\n'


def docker_action(before: bytes | None, size: int = 4096 * MIB) -> CommandAction:
    state = memory_host(files={DAEMON: before})
    _, plan = plan_of(state, DockerShmSpec(size=size))
    (change,) = plan.changes
    assert isinstance(change.action, CommandAction)
    return change.action


READ = """
size=$(sed -n 's/.*"default-shm-size": *"\\([0-9]*\\)\\([mgMG]*\\)".*/\\1 \\2/p' etc/daemon.json 2>/dev/null)
set -- $size
case $2 in g) size=$(($1 << 30)) ;; m) size=$(($1 << 20)) ;; *) size=$1 ;; esac
[ -z "$1" ] || echo "$size" >size # it keeps the last one where its file has none
cat size >said"""


@pytest.fixture
def docker(tmp_path: Path) -> SettingHost:
    """A host whose dockerd reads its file when it is asked, unless it is ``deaf``, or there is ``refused``."""
    host = SettingHost(tmp_path)
    (host / "etc").mkdir()
    host.move(DAEMON, "etc/daemon.json")
    (host / "size").write_text(f"{64 * MIB}\n")
    host.program("read", READ)
    host.program(
        "systemctl",
        'echo "$*" >>asked',
        '[ "$*" = "reload docker.service" ] && [ ! -e refused ] || exit 1',
        "[ -e deaf ] || bin/read",
    )
    host.program(
        "docker",
        'case "$*" in "events --since "*" --filter type=daemon --filter event=reload --format "*) ;;',
        "*) exit 1 ;; esac",
        "echo 1",
        "cat said 2>/dev/null",
    )
    host.program("sleep", 'echo "$1" >>slept')
    (host / "systemd").mkdir()
    host.has_library()
    return host


def size_of(host: SettingHost) -> int:
    return int((host / "size").read_text())


@pytest.mark.parametrize("before", [None, SITE, b'{"default-shm-size": "128m"}\n'])
def test_dockerd_has_the_size_when_the_step_is_over_and_the_former_one_after_it_was_taken_back(
    docker: SettingHost, before: bytes | None
) -> None:
    action = docker_action(before)
    path = docker / "etc" / "daemon.json"
    if before is not None:
        path.write_bytes(before)
        docker.sh(str(docker / "bin" / "read"))
    former = size_of(docker)
    assert docker.looks(action) == action.before == (sha256(before) if before else "absent")
    done = docker.sh(action.do)
    assert (done.returncode, done.stderr) == (0, "")
    assert size_of(docker) == 4096 * MIB
    assert docker.lines("asked") == ["reload docker.service"]
    assert docker.looks(action) == action.after == sha256(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o644
    assert docker.sh(action.undo).returncode == 0
    assert (path.read_bytes() if path.exists() else None) == before
    assert size_of(docker) == former
    assert docker.looks(action) == action.before


@pytest.mark.parametrize(
    ("before", "trouble"),
    [
        (SITE, "deaf"),
        (None, "refused"),
        (SITE, "refused"),
        (b'{"default-shm-size": "128m"}\n', "refused"),
    ],
)
def test_a_dockerd_that_does_not_take_the_size_has_its_file_back(
    docker: SettingHost, before: bytes | None, trouble: str
) -> None:
    action = docker_action(before)
    path = docker / "etc" / "daemon.json"
    if before is not None:
        path.write_bytes(before)
    (docker / trouble).touch()
    done = docker.sh(action.do)
    assert done.returncode != 0
    assert (f"{4096 * MIB} bytes" in done.stdout) is (trouble == "deaf")
    assert (path.read_bytes() if path.exists() else None) == before
    assert docker.looks(action) == action.before
    waited = list(map(float, docker.lines("slept")))
    assert all(0 < seconds <= 0.5 for seconds in waited)
    assert (2 <= sum(waited) <= 30) is (trouble == "deaf")


def test_a_dockerd_that_says_it_late_is_waited_for(docker: SettingHost) -> None:
    (docker / "deaf").touch()
    docker.program("sleep", "echo x >>slept", "[ $(wc -l <slept) -lt 4 ] || bin/read")
    assert docker.sh(docker_action(None).do).returncode == 0
    assert len(docker.lines("slept")) == 4


def test_dockerd_gets_the_signal_itself_where_its_number_is_known(docker: SettingHost) -> None:
    docker.program(
        "dockerd", "trap bin/read HUP", "echo $$ >pid", "while :; do /bin/sleep 0.05; done"
    )
    with subprocess.Popen([docker / "bin" / "dockerd"]) as dockerd:
        try:
            while not ((docker / "pid").exists() and (docker / "pid").read_text().endswith("\n")):
                time.sleep(0.01)
            # Until it has read its file the client is asked, whose sleep is only played.
            docker.program("sleep", "echo x >>slept", "/bin/sleep 0.1")
            assert docker.sh(docker_action(None).do).returncode == 0
        finally:
            dockerd.kill()
    assert size_of(docker) == 4096 * MIB
    assert docker.lines("asked") == []


@pytest.mark.parametrize("number", ["", "none", "of another"])
def test_a_number_that_is_not_dockerds_gets_no_signal(docker: SettingHost, number: str) -> None:
    (docker / "pid").write_text(str(os.getpid()) if number == "of another" else number)
    assert docker.sh(docker_action(None).do).returncode == 0
    assert docker.lines("asked") == ["reload docker.service"]


def answering(docker: SettingHost, answer: str, asked: list[str]) -> None:
    """Have dockerd give an answer to the first question at its socket."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(docker / "sock"))
    server.listen()

    def answer_once() -> None:
        peer, _ = server.accept()
        with server, peer:
            asked.append(peer.recv(4096).decode())
            peer.sendall(answer.encode())

    threading.Thread(target=answer_once, daemon=True).start()


def event(size: int) -> str:
    attributes = {"debug": "false", "default-shm-size": str(size), "name": "gpu01"}
    actor = {"ID": "a", "Attributes": attributes}
    return json.dumps({"Type": "daemon", "Action": "reload", "Actor": actor}, separators=(",", ":"))


GOOD = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "works", "clients"),
    [
        (f"{GOOD}{event(1)}\n{event(4096 * MIB)}\n", True, 0),
        (f"{GOOD}{event(64 * MIB)}\n", False, 0),
        (f"{GOOD}{event(40960 * MIB)}\n", False, 0),
        (GOOD, False, 0),
        ("HTTP/1.0 400 Bad Request\r\n\r\n", True, 1),
        ("", True, 1),
    ],
)
def test_dockerd_is_asked_at_its_socket_and_by_its_client_where_that_gives_no_answer(
    docker: SettingHost, answer: str, works: bool, clients: int
) -> None:
    asked: list[str] = []
    answering(docker, answer, asked)
    docker.program("docker", "echo x >>clients; cat said")
    path = docker / "etc" / "daemon.json"
    path.write_bytes(SITE)
    # Taking it back asks again, at a socket where nobody is.
    docker.program("sleep", "exit 0")
    done = docker.sh(docker_action(SITE).do)
    assert (done.returncode == 0) is works
    assert asked[0].startswith("GET /events?since=")
    assert "%22reload%22" in asked[0]
    if works:
        assert len(docker.lines("clients")) == clients
    else:
        assert f"{4096 * MIB} bytes" in done.stdout
        assert path.read_bytes() == SITE


@pytest.fixture
def daemon(docker: SettingHost) -> Iterator[SettingHost]:
    """The same without systemd: a process that reads its file on SIGHUP."""
    (docker / "systemd").rmdir()
    text = f"cd {docker.folder}; trap bin/read HUP; echo $$ >pid.new; mv pid.new pid; "
    text += "while :; do /bin/sleep 0.05; done"
    # A shell cannot trap what is ignored where it starts, as SIGHUP is below nohup.
    with subprocess.Popen(["env", "--default-signal=HUP", "sh", "-c", text]) as process:
        while not (docker / "pid").exists():
            assert process.poll() is None
        (docker / "bin" / "sleep").unlink()
        yield docker
        process.terminate()


def test_without_systemd_dockerd_gets_the_signal(daemon: SettingHost) -> None:
    action = docker_action(SITE)
    path = daemon / "etc" / "daemon.json"
    path.write_bytes(SITE)
    assert daemon.sh(action.do).returncode == 0
    assert size_of(daemon) == 4096 * MIB
    assert daemon.sh(action.undo).returncode == 0
    assert (path.read_bytes(), size_of(daemon)) == (SITE, 64 * MIB)
    assert daemon.lines("asked") == []


def test_a_path_that_leads_elsewhere_since_the_plan_is_not_what_was_planned_for(
    docker: SettingHost,
) -> None:
    action = docker_action(SITE)
    path = docker / "etc" / "daemon.json"
    other = docker / "etc" / "other.json"
    other.write_bytes(SITE)
    path.symlink_to(other)
    assert docker.looks(action) not in (action.before, action.after)
