"""Shared memory of containers: what Docker and Podman give to each new one.

Cures: "failed to extend /dev/shm/nccl-... to 33030532 bytes", a bus error in a data loader, "No space left on
device" in containers that were started without ``--shm-size``: both engines give them 64 MB.

``default-shm-size`` is put into /etc/docker/daemon.json, whose other keys, order and layout stay, and dockerd
is made to read it: a reload, no container stops. Whether it did is asked of dockerd itself; if not, the
file is put back. A file that is no JSON is left as it is. Podman gets a drop-in file for containers.conf,
which Podman 3.0 (Debian 11) does not read: its containers have to be given ``--shm-size`` each.
Without a spec it acts only where there are GPUs and containers get 64 MB or less. Containers that are
there already keep what they have until they are made anew: they are listed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from remedy.deploys._sizes import MIB, Size, derived, gpu_number, parse_size, short
from remedy.edit.containers_conf import container_setting
from remedy.edit.json_text import JsonTextError, read_members, set_member
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    command,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import Container, Docker, File, HostState, Session
from remedy.spec import SpecSection
from remedy.text import amount, counted
from remedy.values import Unknown

NAME = "docker_shm"
LABEL = "shm-too-small"
_finding = Finder(NAME, LABEL)
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
    [ "$(readlink -f -- "$1" || printf %s "$1")" = "$2" ] && digest "$2" && printf %s "$SUM"
}
"""
# put and digest are of remedy/apply/host: put keeps owner, mode, label and links, and renames into place.
_LIBRARY = """\
write() { # path digest base64
    if [ "$2" = absent ]; then rm -f -- "$1"; return; fi
    printf %s "$3" | base64 -d >"$DIR/daemon.json" && put "$1" 644 "$DIR/daemon.json" "$2"
}
reload() { # bytes: dockerd reads the file, and says that new containers get so much
    since=$(date +%s)
    if [ -d /run/systemd/system ]; then
        systemctl reload docker.service
    else
        kill -HUP "$(cat /var/run/docker.pid)"
    fi || return 1
    n=0
    while [ $n -lt 50 ]; do
        docker events --since "$since" --until "$(date +%s)" --filter type=daemon --filter event=reload \\
            --format '{{index .Actor.Attributes "default-shm-size"}}' | tail -n 1 | grep -qx "$1" && return 0
        n=$((n + 1))
        sleep 0.1
    done
    echo "dockerd was told to reload, and does not say that it has $1 bytes"
    return 1
}
"""


class DockerShmSpec(SpecSection):
    """``size``: of each new container's /dev/shm, such as 32g; without it, it only grows where GPUs need it."""

    size: Size | None = None


def wanted(host: HostState, spec: DockerShmSpec) -> tuple[int, str] | None:
    """Return how much new containers shall get, and why; None where nobody needs it to be anything."""
    if spec.size is not None:
        return spec.size, "docker_shm.size of the spec"
    return derived(host) if gpu_number(host) else None


def assess(_fleet: Fleet, host: HostState, spec: DockerShmSpec) -> Assessment:
    """Decide what the container engines of one host have to be told."""
    want = wanted(host, spec)
    if want is None or not isinstance(host.session, Session):
        return Assessment()
    findings: list[Finding] = []
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    for part in (_docker(host, want, spec), _podman(host, want, spec)):
        findings += part.findings
        changes += part.changes
        blobs |= part.blobs or {}
    findings += _small_containers(host)
    return Assessment(tuple(findings), tuple(changes), blobs)


def _enough(present: int, size: int, spec: DockerShmSpec) -> bool:
    return present == size if spec.size is not None else present > BUILT_IN


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


def _docker(host: HostState, want: tuple[int, str], spec: DockerShmSpec) -> Assessment:
    assert isinstance(host.session, Session)
    size, why = want
    runs = docker_runs(host)
    if not (host.session.has("dockerd") or runs):
        return Assessment()
    given = list(_arguments(host))
    for place, text in given:
        if "--config-file" in text and DAEMON not in text:
            title = f"dockerd is told to read another file than {DAEMON}"
            fix = f"Put {KEY} into that file, or take --config-file away from dockerd's arguments."
            return _only(host, FindingKind.BLOCKED, title, (f"{place}: {text}",), fix)
    for place, text in given:
        words = text.replace("=", " ").replace('"', " ").replace("'", " ").split()
        if FLAG in words[:-1]:
            argument = words[words.index(FLAG) + 1]
            if _enough(parse_size(argument) or 0, size, spec):
                return Assessment()
            # dockerd does not start with a setting in both places.
            title = f"containers get {argument} of /dev/shm by an argument of dockerd"
            fix = f"Set {FLAG}={short(size)} there, and restart docker when no container runs."
            return _only(host, FindingKind.BLOCKED, title, (f"{place}: {text}",), fix)
    file = host.file(DAEMON)
    if isinstance(file, Unknown):
        return _only(host, FindingKind.UNKNOWN, f"{DAEMON} could not be read", (file.reason,))
    try:
        value = read_members(file.content).get(KEY) if file.exists else None
        after = set_member(file.content, KEY, short(size))
    except JsonTextError as error:
        title = f"{DAEMON} is not JSON that dockerd reads, so it is left as it is"
        return _only(host, FindingKind.BLOCKED, title, (str(error),), f"Correct it: {error}.")
    present = BUILT_IN if value is None else parse_size(value) if isinstance(value, str) else None
    if present is not None and _enough(present, size, spec):
        return Assessment()
    told = "" if value is None else f", {DAEMON}: {KEY} is {value!r}"
    finding = _finding(
        host,
        FindingKind.DRIFT,
        f"Docker gives a container {amount(present or 0)} of /dev/shm",
        (f"wanted: {amount(size)}, {why}{told or ', Docker has 64 MB built in'}",),
    )
    if blocked := blocker(file, NAME):
        return Assessment((finding, blocked.on(host.host, LABEL)))
    if not runs:
        return _with_file(host, finding, file, after, f"write {KEY} {short(size)} into {DAEMON}")
    change = _reload_change(host, file, after, (present or BUILT_IN, size), finding.title)
    return Assessment((finding,), (change,))


def _reload_change(
    host: HostState, file: File, after: bytes, sizes: tuple[int, int], reason: str
) -> Change:
    """Return the one step that writes the file and has dockerd read it.

    It is one, so that a daemon that does not take it leaves the old file, and taking it back reloads after
    the old file is there again.
    """
    before, size = sizes
    old, new = (sha256(file.content) if file.exists else "absent"), sha256(after)
    put_old, put_new = (
        _write(file, digest, data) for digest, data in ((old, file.content), (new, after))
    )
    way_back = f"{put_old} && reload {before}"
    if KEY not in read_members(file.content):
        # dockerd keeps a size that its file no longer has (seen with 20.10): it is told the built-in one first.
        told = set_member(file.content, KEY, short(before))
        way_back = f"{_write(file, sha256(told), told)} && reload {before}; told=$?; {put_old} && [ $told = 0 ]"
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write {KEY} {short(size)} into {DAEMON} and reload dockerd",
        reason=reason,
        label=LABEL,
        disrupts="nothing: a reload stops no container, and those that are there keep what they have",
        action=CommandAction(
            observe=_SEEN + command(["seen", file.path, file.real_path]),
            before=old,
            after=new,
            do=f"{_LIBRARY}{put_new} && reload {size} || {{ {{ {way_back}; }} >/dev/null 2>&1; exit 1; }}",
            undo=f"{_LIBRARY}{way_back}",
        ),
    )


def _write(file: File, digest: str, content: bytes) -> str:
    return command(["write", file.real_path, digest, base64.b64encode(content).decode()])


def _podman(host: HostState, want: tuple[int, str], spec: DockerShmSpec) -> Assessment:
    assert isinstance(host.session, Session)
    if not host.session.has("podman"):
        return Assessment()
    size, why = want
    ours = host.file(PODMAN)
    if isinstance(ours, Unknown):
        return _only(host, FindingKind.UNKNOWN, f"{PODMAN} could not be read", (ours.reason,))
    drop_ins = [file.path for file in host.files_in(PODMAN_FOLDER) if isinstance(file, File)]
    value, place = "", ""
    for path in (*PODMAN_MAIN, *drop_ins):
        file = host.file(path)
        if isinstance(file, File) and (found := container_setting(file.content, "shm_size")):
            value, place = found, path
    # Podman reads "2g" as 2,000,000,000 bytes where Docker reads 2 GiB (seen with 4.3), and no unit as bytes.
    present = (parse_size(value, 1000) or 0) if value else BUILT_IN
    if _enough(present, size, spec):
        return Assessment()
    seen = f"{place}: shm_size is {value!r}" if place else "Podman has 64 MB built in"
    title = f"Podman gives a container {amount(present)} of /dev/shm"
    if place > PODMAN and place.startswith(f"{PODMAN_FOLDER}/"):
        fix = f"Remove shm_size from {place}: of two files the later name wins."
        return _only(host, FindingKind.BLOCKED, title, (seen,), fix)
    finding = _finding(host, FindingKind.DRIFT, title, (f"wanted: {amount(size)}, {why}", seen))
    if blocked := blocker(ours, NAME):
        return Assessment((finding, blocked.on(host.host, LABEL)))
    text = f'# Written by remedy: /dev/shm of new containers.\n[containers]\nshm_size = "{size}"\n'
    return _with_file(
        host, finding, ours, text.encode(), f"write shm_size {short(size)} into {PODMAN}"
    )


def _with_file(
    host: HostState, finding: Finding, file: File, after: bytes, title: str
) -> Assessment:
    change = Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=title,
        reason=finding.title,
        label=LABEL,
        action=FileAction(
            path=file.path,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(after),
        ),
    )
    blobs = {sha256(data): data for data in (file.content, after)}
    return Assessment((finding,), (change,), blobs)


def _small_containers(host: HostState) -> Iterator[Finding]:
    """Yield the running containers that have what the engines give by themselves."""
    if isinstance(host.containers, Unknown):
        return
    for engine, found in (
        ("Docker", host.containers.docker_containers),
        ("Podman", host.containers.podman_containers),
    ):
        if isinstance(found, Unknown):
            continue
        small = [one for one in found if one.shm <= BUILT_IN and not _elsewhere(one)]
        if small:
            yield _finding(
                host,
                FindingKind.REPORT,
                f"{counted(len(small), 'running container')} of {engine} have 64 MB of /dev/shm or less",
                tuple(f"{one.name} ({one.image}): {amount(one.shm)}" for one in small),
                "If one of them trains: make it anew; its size is fixed when it is created.",
            )


def _elsewhere(one: Container) -> bool:
    """Return whether a container's /dev/shm is that of the host, of another container, or none."""
    return one.ipc_mode in ("host", "none") or one.ipc_mode.startswith("container:")


def _only(
    host: HostState, kind: FindingKind, title: str, evidence: tuple[str, ...], fix: str = ""
) -> Assessment:
    return Assessment((_finding(host, kind, title, evidence, fix),))


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the daemon's file has the new content, or the old one."""
    action, file = change.action, state.file(DAEMON)
    if not isinstance(action, CommandAction) or isinstance(file, Unknown):
        return state
    # Both contents are in the two commands.
    contents = (_decoded(word) for word in f"{action.do} {action.undo}".split())
    content = next((one for one in contents if sha256(one) == action.after), b"")
    changed = file.model_copy(update={"content": content, "exists": action.after != "absent"})
    return state.model_copy(update={"files": {**state.files, DAEMON: changed}})


def _decoded(word: str) -> bytes:
    try:
        return base64.b64decode(word.strip("'"), validate=True)
    except ValueError:
        return b""


old_remedy(
    name=NAME,
    title="Shared memory of containers",
    text=__doc__,
    cures=(LABEL,),
    spec=DockerShmSpec,
    assess=assess,
    order=62,
    promise=promise,
    reads=(PODMAN,),
)
