"""Container engines, and what the running containers have for shared memory.

Files and the kernel say most of it. ``docker info`` is read only on GPU hosts where dockerd's file is younger
than dockerd, ``docker inspect`` only where Docker keeps its files elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from remedy.bounds import read_json
from remedy.probe.files import File
from remedy.probe.frames import NoAnswerError, Sections, as_text, fact
from remedy.probe.processes import Process
from remedy.values import Fact, Record, Unknown

DAEMON = "/etc/docker/daemon.json"
BUILT_IN = ("io.containerd.runc.v2", "runc")
"""The runtimes that every dockerd has."""
ELSEWHERE = "host"
"""The mode of a container of Podman's that has no /dev/shm of its own, whoever's it shares."""

_SHM_MOUNT = re.compile(r"\S+ \S+ \S+ \S+ (\S+/([0-9a-f]{64})/\S*shm) .* - tmpfs \S+ (\S+)")
_SIZE = re.compile(r"\bsize=(\d+)k\b")


class Container(NamedTuple):
    """A running container; ``shm`` is its /dev/shm in bytes, which ``ipc_mode`` "host" makes meaningless."""

    id: str
    name: str
    image: str
    shm: int
    ipc_mode: str
    pid: int


class Docker(Record):
    """The Docker daemon as it runs; its default for shared memory is in daemon.json or its arguments."""

    default_runtime: str
    runtimes: tuple[str, ...]


class Containers(Record):
    """Docker (``None`` when no daemon runs), and the containers that run, of Docker and of root's Podman."""

    docker: Fact[Docker | None]
    docker_containers: Fact[tuple[Container, ...]]
    podman_containers: Fact[tuple[Container, ...]]


def parse_containers(
    sections: Sections, files: Mapping[str, Fact[File]], processes: Fact[tuple[Process, ...]]
) -> Containers:
    """Read the sections of Docker and Podman, with what files and processes say."""
    return Containers(
        docker=fact(
            lambda: (
                None if sections.absent("docker") else _docker(sections, files, _known(processes))
            )
        ),
        docker_containers=fact(lambda: _docker_containers(sections)),
        podman_containers=fact(lambda: _podman_containers(sections, processes)),
    )


def _known(processes: Fact[tuple[Process, ...]]) -> tuple[Process, ...]:
    if isinstance(processes, Unknown):
        raise NoAnswerError(processes.reason)
    return processes


def _docker(
    sections: Sections, files: Mapping[str, Fact[File]], processes: Sequence[Process]
) -> Docker:
    word, _, pid = sections.text("docker").strip().partition(" ")
    if word == "files":
        arguments = next((p.arguments for p in processes if str(p.pid) == pid), None)
        if arguments is None:
            raise NoAnswerError("the arguments of dockerd could not be read")
        return _configured(_settings(files), arguments)
    info = read_json(sections.tool("docker"))
    if "ServerVersion" not in info or info.get("ServerErrors"):
        raise ValueError("; ".join(info.get("ServerErrors") or ["the daemon did not answer"]))
    return Docker(
        default_runtime=info.get("DefaultRuntime", ""),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
    )


def _settings(files: Mapping[str, Fact[File]]) -> Mapping[str, object]:
    file = files.get(DAEMON, Unknown(reason=f"the probe did not read {DAEMON}"))
    if isinstance(file, Unknown):
        raise NoAnswerError(file.reason)
    settings = read_json(as_text(file.content)) if file.content.strip() else {}
    if not isinstance(settings, dict):
        raise NoAnswerError(f"{DAEMON} holds no settings")
    return settings


def _configured(settings: Mapping[str, object], arguments: Sequence[str]) -> Docker:
    """Return what dockerd(8) makes of its file and its arguments; it refuses what is in both."""
    runtimes = settings.get("runtimes")
    names = {*BUILT_IN, *(runtimes if isinstance(runtimes, dict) else ())}
    names |= {value.partition("=")[0] for value in _options(arguments, "--add-runtime")}
    default = [*_options(arguments, "--default-runtime"), settings.get("default-runtime"), "runc"]
    return Docker(
        default_runtime=str(next(value for value in default if value)),
        runtimes=tuple(sorted(names)),
    )


def _options(arguments: Sequence[str], name: str) -> list[str]:
    """Return the values of a long option, in either spelling."""
    joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{name}=")]
    return joined + [value for word, value in pairwise(arguments) if word == name]


def _docker_containers(sections: Sections) -> tuple[Container, ...]:
    if sections.absent("docker-containers"):
        return ()
    lines = sections.text("docker-containers").splitlines()
    if not lines or not lines[0].startswith("container "):
        return tuple(_inspected(entry) for entry in _json_lines(sections))
    running = [line.split() for line in lines if line.startswith("container ")]
    values: dict[str, list[str]] = {}
    for line in lines:
        path, colon, pair = line.partition(":")
        if colon and path.startswith("/"):
            values.setdefault(path.split("/")[-2], []).append(pair)
    return tuple(_kept(words[1], int(words[2]), values.get(words[1], [])) for words in running)


def _json_lines(sections: Sections) -> list[Mapping[str, object]]:
    return list(sections.json_lines(sections.tool("docker-containers")))


def _inspected(entry: Mapping[str, object]) -> Container:
    return Container(
        id=str(entry["id"]),
        name=str(entry["name"]).lstrip("/"),
        image=str(entry["image"]),
        shm=int(str(entry["shm_bytes"])),
        ipc_mode=str(entry["ipc_mode"] or ""),
        pid=int(str(entry["pid"])),
    )


def _kept(number: str, pid: int, pairs: Sequence[str]) -> Container:
    """Return the container of Docker's own files: pairs of a key and its value, in their order.

    The image comes first of its name, in the part that no label comes before; of the others the last counts,
    since labels come before them. A text in JSON holds no unquoted quotation mark, so no value plays a key.
    """

    def values(key: str) -> list[str]:
        return [p.rpartition(f'"{key}":')[2].strip('"') for p in pairs if f'"{key}":' in p]

    names, images, sizes, modes = map(values, ("Name", "Image", "ShmSize", "IpcMode"))
    if not (names and images and sizes and modes):
        raise NoAnswerError(f"Docker's files say too little of container {number[:12]}")
    return Container(
        id=number,
        name=names[-1].lstrip("/"),
        image=images[0],
        shm=int(sizes[-1]),
        ipc_mode=modes[-1],
        pid=pid,
    )


def _podman_containers(
    sections: Sections, processes: Fact[tuple[Process, ...]]
) -> tuple[Container, ...]:
    """Read Podman's containers: conmon's arguments, its child, the mounts, and the storage's list of names."""
    if sections.absent("podman-containers"):
        return ()
    images = {}
    for lines in sections.lines("podman-containers").values():
        for entry in read_json("\n".join(lines)):
            metadata = read_json(entry.get("metadata") or "{}")
            images[entry["id"]] = str(metadata.get("image-name", ""))
    sizes = _shm_mounts(sections)
    running = _known(processes)
    monitors = [p for p in running if p.name == "conmon" and p.arguments]
    containers = []
    for monitor in monitors:
        arguments = monitor.arguments or ()
        if not any(word.endswith("/podman") for word in arguments):
            continue  # CRI-O's, whose pods are Kubernetes' business
        number = next(iter(_options(arguments, "-c")), "")
        child = next((p.pid for p in running if p.parent == monitor.pid), 0)
        containers.append(
            Container(
                id=number,
                name=next(iter(_options(arguments, "-n")), ""),
                image=images.get(number, ""),
                shm=sizes.get(number, 0),
                ipc_mode="private" if number in sizes else ELSEWHERE,
                pid=child,
            )
        )
    return tuple(containers)


def _shm_mounts(sections: Sections) -> Mapping[str, int]:
    """Return the bytes of /dev/shm of each container that has one of its own, by its id."""
    sizes = {}
    for line in sections.lines("kernel")["/proc/self/mountinfo"]:
        match = _SHM_MOUNT.fullmatch(line)
        if match and (size := _SIZE.search(match[3])):
            sizes[match[2]] = int(size[1]) * 1024
    return sizes
