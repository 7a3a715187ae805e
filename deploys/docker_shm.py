"""Shared memory of containers: what Docker and Podman give to each new one.

Cures: "failed to extend /dev/shm/nccl-... to 33030532 bytes", a bus error in a data loader, "No space left on
device" in containers that were started without ``--shm-size``: both engines give them 64 MB.

``default-shm-size`` is put into /etc/docker/daemon.json, whose other keys, order and layout stay, and dockerd
is made to read it: a reload, no container stops. Whether it did is asked of dockerd itself; if not, the
file is put back. A file that is no JSON is left as it is. Podman gets a drop-in file for containers.conf,
which Podman 3.0 (Debian 11) does not read: its containers have to be given ``--shm-size`` each.
Without a spec it acts only where there are GPUs and containers get 64 MB or less. Containers that are
there already keep what they have until they are created again: they are listed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TypeAlias

from remedy.deploys._files import file_digest
from remedy.deploys._sizes import MIB, Size, derived, gpu_number, parse_size, short
from remedy.edit.containers_conf import container_setting
from remedy.edit.json_text import JsonTextError, read_members, set_member
from remedy.plan import Change, Command, CommandAction, Workbench, command, remedy, sha256
from remedy.probe import Container, Docker, File, HostState, LoginSession
from remedy.spec import SpecSection
from remedy.text import amount, counted
from remedy.values import Unknown

DAEMON = "/etc/docker/daemon.json"
KEY = "default-shm-size"
FLAG = f"--{KEY}"
BUILT_IN = 64 * MIB
"""What both engines give where nothing is set (moby daemon/config/config.go; containers.conf(5))."""
ARGUMENT_FILES = ("/etc/default/docker", "/etc/sysconfig/docker")
UNIT_FOLDER = "/etc/systemd/system/docker.service.d"

PODMAN_MAIN = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
PODMAN_FOLDER = "/etc/containers/containers.conf.d"
PODMAN = f"{PODMAN_FOLDER}/90-remedy.conf"

_SEEN = """\
seen() { # path real: the digest, as long as the path leads there
    look_up "$1" && [ "$REAL" = "$2" ] && printf %s "$SUM"
}
"""
# look_up, put and drop are of remedy/apply/host: put keeps owner, mode, label and links.
_LIBRARY = """\
write() { # path real digest base64
    if [ "$3" = absent ]; then drop "$1" "$2"; return; fi
    printf %s "$4" | base64 -d >"$DIR/daemon.json" && put "$1" "$2" 644 "$DIR/daemon.json" "$3"
}
moment() { # to the nanosecond where date can: whole seconds would hide what happened in this one
    now=$(date +%s.%N)
    case $now in *[!0-9.]*) now=${now%%.*} ;; esac
}
heard() { # bytes: dockerd itself says so; 2: it cannot be asked this way; its client costs more
    # The numbers are Linux's for a stream of Unix: the module that names them costs four times what perl does.
    perl -e '
        my ($socket, $since, $bytes) = @ARGV;
        my $until = time + 30;
        socket(D, 1, 1, 0) && connect(D, pack("Sa*", 1, $socket)) or exit 2;
        my $filters = "%7B%22type%22:%5B%22daemon%22%5D,%22event%22:%5B%22reload%22%5D%7D";
        my $what = "/events?since=$since&until=$until&filters=$filters";
        alarm 35;
        syswrite D, "GET $what HTTP/1.0\\r\\nHost: docker\\r\\n\\r\\n";
        <D> =~ m(^HTTP/1\\.\\d 200 ) or exit 2;
        while (<D>) { exit 0 if /"default-shm-size":"$bytes"/ }
        exit 1' /var/run/docker.sock "$since" "$1" 2>/dev/null
}
hang_up() { # what the unit would have sent; systemd and the programs that ask it cost more than all else here
    pid= stat=
    { read -r pid </var/run/docker.pid; } 2>/dev/null
    case $pid in '' | *[!0-9]*) return 1 ;; esac
    { read -r stat <"/proc/$pid/stat"; } 2>/dev/null
    case $stat in "$pid (dockerd) "*) kill -HUP "$pid" ;; *) return 1 ;; esac
}
reload() { # bytes: dockerd reads the file, and says that new containers get so much
    moment
    since=$now
    hang_up || if [ -d /run/systemd/system ]; then
        systemctl reload docker.service
    else
        kill -HUP "$(cat /var/run/docker.pid)"
    fi || return 1
    heard "$1"
    case $? in 0) return 0 ;; 1) n=50 ;; *) n=0 ;; esac
    while [ $n -lt 50 ]; do
        sleep 0.1 # it reads the file some time after the signal; asking costs more than waiting
        moment
        docker events --since "$since" --until "$now" --filter type=daemon --filter event=reload \\
            --format '{{index .Actor.Attributes "default-shm-size"}}' | tail -n 1 | grep -qx "$1" && return 0
        n=$((n + 1))
    done
    echo "dockerd was reloaded, and does not say that it has $1 bytes"
    return 1
}
"""


class DockerShmSpec(SpecSection):
    """``size``: of each new container's /dev/shm, such as 32g; without it, it only grows where GPUs need it."""

    size: Size | None = None


Bench: TypeAlias = Workbench[DockerShmSpec]


def target_size(host: HostState, settings: DockerShmSpec) -> tuple[int, str] | None:
    """Return how much new containers get, and why; None where nobody needs it to be anything."""
    if settings.size is not None:
        return settings.size, "docker_shm.size of the spec"
    return derived(host) if gpu_number(host) else None


@remedy(
    "Shared memory of containers",
    DockerShmSpec,
    cures=("shm-too-small",),
    order=62,
    reads=(PODMAN,),
)
def docker_shm(bench: Bench) -> None:
    """Decide what the container engines of one host have to be told."""
    target = target_size(bench.host, bench.settings)
    if target is None:
        return
    session = bench.known(bench.host.session)
    with bench.part():
        _docker(bench, session, *target)
    with bench.part():
        _podman(bench, session, *target)
    _report_small(bench)


def _enough(current: int, size: int, settings: DockerShmSpec) -> bool:
    return current == size if settings.size is not None else current > BUILT_IN


def docker_runs(host: HostState) -> bool:
    """Return whether dockerd is there to read its file."""
    if not isinstance(host.containers, Unknown) and isinstance(host.containers.docker, Docker):
        return True
    units = host.units
    return not isinstance(units, Unknown) and (
        "docker.service" in units and units["docker.service"].running
    )


def _arguments(host: HostState) -> Iterator[tuple[str, str]]:
    """Yield where dockerd is given arguments of its own, and their text."""
    if not isinstance(host.processes, Unknown):
        for process in host.processes:
            if process.name == "dockerd" and process.arguments:
                yield f"dockerd, pid {process.pid}", " ".join(process.arguments)
    drop_ins = [file.path for file in host.files_in(UNIT_FOLDER) if isinstance(file, File)]
    for path in (*drop_ins, *ARGUMENT_FILES):
        file = host.file(path)
        if isinstance(file, File) and file.exists:
            for line in file.content.decode("utf-8", "replace").splitlines():
                if not line.lstrip().startswith("#"):
                    yield path, line


def _is_set_by_argument(bench: Bench, size: int) -> bool:
    """Return whether dockerd has the size, or its file, from its arguments; blocked where that is wrong."""
    arguments = list(_arguments(bench.host))
    for place, text in arguments:
        if "--config-file" in text and DAEMON not in text:
            bench.blocked(
                f"dockerd reads another file than {DAEMON}",
                f"{place}: {text}",
                f"Put {KEY} into that file, or take --config-file away from dockerd's arguments.",
            )
            return True
    for place, text in arguments:
        words = text.replace("=", " ").replace('"', " ").replace("'", " ").split()
        if FLAG not in words[:-1]:
            continue
        argument = words[words.index(FLAG) + 1]
        if not _enough(parse_size(argument) or 0, size, bench.settings):
            # dockerd does not start with a setting in both places.
            bench.blocked(
                f"containers get {argument} of /dev/shm by an argument of dockerd",
                f"{place}: {text}",
                f"Set {FLAG}={short(size)} there, and restart docker when no container runs.",
            )
        return True
    return False


def _docker(bench: Bench, session: LoginSession, size: int, why: str) -> None:
    runs = docker_runs(bench.host)
    if not (session.has("dockerd") or runs) or _is_set_by_argument(bench, size):
        return
    file = bench.file(DAEMON)
    try:
        value = read_members(file.content).get(KEY)
        after = set_member(file.content, KEY, short(size))
    except JsonTextError as error:
        title = f"{DAEMON} is not JSON that dockerd reads, so it is left as it is"
        bench.blocked(title, str(error), f"Correct it: {error}.")
        return
    current = BUILT_IN if value is None else parse_size(value) if isinstance(value, str) else None
    if current is not None and _enough(current, size, bench.settings):
        return
    source = "Docker has 64 MB built in" if value is None else f"{DAEMON}: {KEY} is {value!r}"
    finding = bench.drift(
        f"Docker gives a container {amount(current or 0)} of /dev/shm",
        f"needs {amount(size)}, {why}, {source}",
    )
    title = f"write {KEY} {short(size)} into {DAEMON}"
    if not runs:
        bench.write(DAEMON, after, title, because=finding)
    elif bench.can_write(DAEMON, because=finding):
        bench.run(
            f"{title} and reload dockerd",
            because=finding,
            disrupts="nothing: a reload stops no container, and those that are there keep what they have",
            restarts="dockerd, a reload",
            **_reload(file, after, current or BUILT_IN, size),
        )


def _reload(file: File, after: bytes, current: int, size: int) -> Command:
    """Return the one command that writes the file and has dockerd read it.

    It is one, so that a daemon that does not take it leaves the old file, and taking it back reloads after
    the old file is there again.
    """
    put_old = _write(file, file_digest(file), file.content)
    way_back = f"{put_old} && reload {current}"
    if KEY not in read_members(file.content):
        # dockerd keeps a size that its file no longer has (seen with 20.10): it gets the built-in one first.
        text = set_member(file.content, KEY, short(current))
        put_first = f"{_write(file, sha256(text), text)} && reload {current}"
        way_back = f"{put_first}; status=$?; {put_old} && [ $status = 0 ]"
    put_new = _write(file, sha256(after), after)
    return {
        "observe": _SEEN + command(["seen", file.path, file.real_path]),
        "before": file_digest(file),
        "after": sha256(after),
        "do": f"{_LIBRARY}{put_new} && reload {size} || {{ {{ {way_back}; }} >/dev/null 2>&1; exit 1; }}",
        "undo": f"{_LIBRARY}{way_back}",
        "does": "writes the file, reloads dockerd, and puts the file back unless dockerd says within 30 s "
        f"that new containers get {amount(size)}",
        "undoes": "puts the former file back and reloads dockerd; fails unless dockerd says within 30 s that "
        f"new containers get {amount(current)}",
    }


def _write(file: File, digest: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    return command(["write", file.path, file.real_path, digest, text])


def _podman(bench: Bench, session: LoginSession, size: int, why: str) -> None:
    if not session.has("podman"):
        return
    bench.file(PODMAN)
    value, place = "", ""
    drop_ins = [file.path for file in bench.host.files_in(PODMAN_FOLDER) if isinstance(file, File)]
    for path in (*PODMAN_MAIN, *drop_ins):
        file = bench.host.file(path)
        if isinstance(file, File) and (setting := container_setting(file.content, "shm_size")):
            value, place = setting, path
    # Podman reads "2g" as 2,000,000,000 bytes where Docker reads 2 GiB (seen with 4.3), and no unit as bytes.
    current = (parse_size(value, 1000) or 0) if value else BUILT_IN
    if _enough(current, size, bench.settings):
        return
    source = f"{place}: shm_size is {value!r}" if place else "Podman has 64 MB built in"
    title = f"Podman gives a container {amount(current)} of /dev/shm"
    if place > PODMAN and place.startswith(f"{PODMAN_FOLDER}/"):
        bench.blocked(
            title, source, f"Remove shm_size from {place}: of two files the later name wins."
        )
        return
    finding = bench.drift(title, (f"needs {amount(size)}, {why}", source))
    text = f'# Written by remedy: /dev/shm of new containers.\n[containers]\nshm_size = "{size}"\n'
    bench.write(
        PODMAN, text.encode(), f"write shm_size {short(size)} into {PODMAN}", because=finding
    )


def _report_small(bench: Bench) -> None:
    """Report the running containers that have what the engines give by themselves."""
    containers = bench.known(bench.host.containers)
    for engine, running in (
        ("Docker", containers.docker_containers),
        ("Podman", containers.podman_containers),
    ):
        every = () if isinstance(running, Unknown) else running
        small = [item for item in every if item.shm <= BUILT_IN and not _elsewhere(item)]
        if small:
            bench.report(
                f"64 MB of /dev/shm or less in {counted(len(small), 'running container')} of {engine}",
                (f"{item.name} ({item.image}): {amount(item.shm)}" for item in small),
                "If one of them trains, create it again: its size is fixed when it is created.",
            )


def _elsewhere(container: Container) -> bool:
    """Return whether a container's /dev/shm is that of the host, of another container, or none."""
    return container.ipc_mode in ("host", "none") or container.ipc_mode.startswith("container:")


@docker_shm.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the daemon's file has the new content, or the old one."""
    action, file = change.action, state.file(DAEMON)
    if not isinstance(action, CommandAction) or isinstance(file, Unknown):
        return state
    # Both contents are in the two commands.
    contents = (_decoded(word) for word in f"{action.do} {action.undo}".split())
    content = next((text for text in contents if sha256(text) == action.after), b"")
    changed = file.model_copy(update={"content": content, "exists": action.after != "absent"})
    return state.model_copy(update={"files": {**state.files, DAEMON: changed}})


@docker_shm.observes
def observation(state: HostState, _change: Change) -> str:
    """Return the digest of the daemon's file."""
    file = state.file(DAEMON)
    assert isinstance(file, File)
    return file_digest(file)


def _decoded(word: str) -> bytes:
    try:
        return base64.b64decode(word.strip("'"), validate=True)
    except ValueError:
        return b""
