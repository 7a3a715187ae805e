"""Starting a program on all hosts by Open MPI's mpirun, without ssh from host to host.

It travels to the hosts: standard library only, Python >= 3.8. mpirun runs on the first host and has a daemon
of its own (orted) started on every other one by a "launch agent", which is ssh as a rule. Here it is this file:
on each other host a follower waits, connected to the first host, and starts the daemon that is asked for. So
hosts need no keys of each other, and the deadline, the process group and the cleaning up of every host hold for
all that Open MPI starts there.

What a follower receives is data: signed with the run's secret, and taken only where it is an orted with options
of the form that mpirun gives it. (orte/mca/plm/rsh/plm_rsh_module.c, Open MPI 4.1.)

The interface: where neither the environment nor Open MPI's own files choose one, it is that of the host's
cluster address, by ``btl_tcp_if_include`` and ``oob_tcp_if_include``.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MCA_FILES = (
    "~/.openmpi/mca-params.conf",
    "/etc/openmpi/openmpi-mca-params.conf",
    "/etc/openmpi-mca-params.conf",
)
LIBRARIES = ("libmpi.so.40", "libmpi.so")
# A mark of each message, so that one cannot be sent back as another.
JOIN, START = "join", "start"
SOCKET = "head.sock"
CHOSEN = "REMEDY_VERIFY_CHOSEN"  # set where the daemons' interface is our choice
# What a rank is: each host has its own interpreter and its own folder, which its daemon hands down.
PYTHON, FOLDER = "REMEDY_VERIFY_PYTHON", "REMEDY_VERIFY_FOLDER"
RANK = ("sh", "-c", f'exec "${PYTHON}" "${FOLDER}/worker.py" "$@"', "sh")
LONGEST = 1 << 20
_SIOCGIFADDR = 0x8915  # netdevice(7)
_OPTION = re.compile(r"--?[a-z][a-z-]*\Z")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*\Z")


def lacking() -> str:
    """Say what this host has not got, or return an empty text."""
    mpirun = shutil.which("mpirun")
    if not mpirun or not shutil.which("orted"):
        return "mpirun and orted are not in its PATH"
    version = subprocess.run(
        [mpirun, "--version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=20,
        check=False,
    )
    first = (version.stdout.decode("utf-8", "replace").splitlines() or [""])[0]
    if not re.search(r"Open MPI\) 4\.", first):
        return f"its {mpirun} is {first!r}, and the launching here was made for Open MPI 4"
    return ""


def library() -> ctypes.CDLL:
    """Load libmpi: as the linker finds it, or from beside mpirun.

    Raises:
        OSError: it is nowhere.
    """
    home = Path(os.path.realpath(shutil.which("mpirun") or "/usr/bin/mpirun")).parent.parent
    folders = ("", f"{home}/lib/", f"{home}/lib64/")
    for path in [folder + name for folder in folders for name in LIBRARIES]:
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as failure:
            error = failure
    raise error


def chosen() -> set[str]:
    """Collect Open MPI's parameters that this host sets by itself, in the environment or in its files."""
    names = {name[9:] for name in os.environ if name.startswith("OMPI_MCA_")}
    for file in MCA_FILES:
        path = Path(file).expanduser()
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        names.update(re.findall(r"^[ \t]*([a-z]\w*)[ \t]*=", text, re.M))
    return names


def interface(layer: str, address: str) -> dict[str, str]:
    """Set Open MPI's interface to the one with an address, where nothing else is chosen.

    Args:
        layer: "oob" for the daemons' own connections, "btl" for those of the ranks.
        address: of this host.
    """
    name = f"{layer}_tcp_if_include"
    if chosen() & {name, f"{layer}_tcp_if_exclude"}:
        return {}
    return {f"OMPI_MCA_{name}": named(address)}


def named(address: str) -> str:
    """Name the interface that has an address; where that is not its first one, by a network around it.

    Open MPI refuses a network of one address (opal/util/if.c, ``opal_iftupletoaddr``).
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode("ascii"))
                bound = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)[20:24]
            except OSError:
                continue
            if socket.inet_ntoa(bound) == address:
                return name
    return f"{address}/31"


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Make the command that the agent starts: the head on the first host, a follower on all others.

    Args:
        config: of this host.
        directory: the run's folder, which has another name on every host.
    """
    role = "head" if config["node"] == 0 else "follow"
    # The ranks choose theirs by themselves: what mpirun has here it gives to all of them.
    environment = {PYTHON: sys.executable, FOLDER: directory}
    choice = interface("oob", config["address"])
    environment.update(choice, **({CHOSEN: "oob"} if choice else {}))
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    text = f"import sys; sys.path.insert(0, {directory!a}); from remedy.verify.onhost.engines import openmpi"
    text += f"; openmpi.{role}(sys.argv[1])"
    return [sys.executable, "-c", text, directory], environment


def sign(config: dict[str, Any], *parts: str) -> str:
    """Make a signature that only hosts of this run can make."""
    text = "\0".join([config["nonce"], *parts]).encode("utf-8")
    return hmac.new(config["secret"].encode("ascii"), text, hashlib.sha256).hexdigest()


class SignedLine:
    """One JSON object a line, over a socket; a line is never longer than ``LONGEST``.

    ``challenge`` is what the other side has to sign its request with.
    """

    def __init__(self, link: socket.socket) -> None:
        self.challenge = ""
        self.link = link
        self.file = link.makefile("rb")

    def say(self, value: Any) -> None:
        """Send an object."""
        self.link.sendall(json.dumps(value).encode("ascii") + b"\n")

    def hear(self) -> Any:
        """Wait for an object.

        Raises:
            ConnectionError: the other side has gone.
            ValueError: it is none.
        """
        text = self.file.readline(LONGEST)
        if not text.endswith(b"\n"):
            raise ConnectionError("the connection between the hosts' agents was lost")
        return json.loads(text)


def head(directory: str) -> None:
    """Wait for every follower, then run mpirun, and hand on what it asks for.

    Args:
        directory: the run's folder.
    """
    config = json.loads(Path(directory, "config.json").read_text(encoding="ascii"))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((config["address"], config["port"]))
        door.listen(len(config["hosts"]) + 16)
        followers = gathered(config, door)
    missing = [node for node in range(1, config["nodes"]) if node not in followers]
    if missing:
        absent(config, missing)
        sys.exit(1)
    sys.exit(run(config, followers))


def gathered(config: dict[str, Any], door: socket.socket) -> dict[int, SignedLine]:
    """Let the followers in, as many as come in time, by their node."""
    end = config["began"] + config["join_seconds"]
    followers: dict[int, SignedLine] = {}
    while len(followers) < config["nodes"] - 1 and time.monotonic() < end:
        door.settimeout(max(0.1, end - time.monotonic()))
        try:
            link, _ = door.accept()
        except OSError:
            break
        link.settimeout(5.0)
        line, challenge = SignedLine(link), secrets.token_hex(16)
        try:
            line.say({"challenge": challenge})
            message = line.hear()
            node = int(message["node"])
            right = sign(config, JOIN, challenge, str(node))
            if 0 < node < config["nodes"] and hmac.compare_digest(right, message["proof"]):
                line.challenge = str(message["challenge"])
                followers[node] = line
        except (OSError, ValueError, KeyError, TypeError):
            link.close()
    return followers


def absent(config: dict[str, Any], missing: list[int]) -> None:
    """Leave word of the hosts that did not come, as the ranks that they would have run."""
    starts = [sum(ranks for _, ranks in config["hosts"][:node]) for node in range(config["nodes"])]
    ranks = [starts[n] + local for n in missing for local in range(config["hosts"][n][1])]
    text = f"ranks {ranks} did not join: their hosts did not connect to port {config['port']}"
    for kind, value in (
        ("missing", {"ranks": ranks}),
        ("error", {"phase": "", "text": text, "long": text}),
    ):
        Path(config["directory"], f"{kind}.0.json").write_text(json.dumps(value), encoding="ascii")


def run(config: dict[str, Any], followers: dict[int, SignedLine]) -> int:
    """Run mpirun to its end; returns its exit code.

    mpirun starts the launch agent once a host, which asks us through a socket in the run's folder.
    """
    directory = config["directory"]
    hosts = "".join(f"{address} slots={ranks}\n" for address, ranks in config["hosts"])
    Path(directory, "hosts").write_text(hosts, encoding="ascii")
    agent = f"{sys.executable} {directory}/agent.py"
    text = f"import sys\nsys.path.insert(0, {directory!a})\n"
    text += "from remedy.verify.onhost.engines.openmpi import ask\nask(sys.argv[1:])\n"
    Path(directory, "agent.py").write_text(text, encoding="ascii")
    words = ["mpirun", "-np", str(config["world"]), "--hostfile", f"{directory}/hosts"]
    words += ["--map-by", "slot", "--bind-to", "none", "--leave-session-attached", "-wd", "/"]
    for name, value in (
        ("plm", "rsh"),
        ("plm_rsh_agent", agent),
        ("plm_rsh_no_tree_spawn", "1"),
        ("plm_rsh_num_concurrent", str(config["nodes"])),
        # Names may be what is broken: hosts are called by their addresses.
        ("orte_keep_fqdn_hostnames", "1"),
    ):
        words += ["--mca", name, value]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(f"{directory}/{SOCKET}")
        door.listen(len(followers) + 1)
        door.settimeout(0.2)
        mpirun = subprocess.Popen([*words, *RANK], stdin=subprocess.DEVNULL)
        while mpirun.poll() is None:
            try:
                link, _ = door.accept()
            except OSError:
                continue
            with link:
                line = SignedLine(link)
                try:
                    line.say(hand_on(config, followers, line.hear()))
                except (OSError, ValueError, KeyError) as error:
                    print(f"handing a daemon on failed: {error}", flush=True)
    return mpirun.returncode


def hand_on(
    config: dict[str, Any], followers: dict[int, SignedLine], request: Any
) -> dict[str, str]:
    """Have a follower start a daemon; returns an object whose ``trouble`` is empty when it did."""
    addresses = [address for address, _ in config["hosts"]]
    if request["host"] not in addresses[1:]:
        return {
            "trouble": f"mpirun asks for a daemon on {request['host']!r}, which is not a host of this run"
        }
    line = followers[addresses.index(request["host"])]
    text = json.dumps(request["words"])
    line.say({"words": text, "proof": sign(config, START, line.challenge, text)})
    answer = line.hear()
    return {"trouble": str(answer["trouble"])}


def ask(arguments: list[str]) -> None:
    """Be the launch agent: mpirun gives a host and the command for its shell.

    Args:
        arguments: the host, and the words of the command.
    """
    host, *rest = arguments
    directory = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(f"{directory}/{SOCKET}")
        line = SignedLine(link)
        # As a remote shell would take them apart, but nothing of it is run by one.
        line.say({"host": host, "words": shlex.split(" ".join(rest))})
        trouble = line.hear()["trouble"]
    if trouble:
        sys.exit(f"{host}: {trouble}")


def follow(directory: str) -> None:
    """Wait for the first host's word, and run the daemon to its end.

    Args:
        directory: the run's folder.
    """
    config = json.loads(Path(directory, "config.json").read_text(encoding="ascii"))
    line = connected(config)
    challenge = secrets.token_hex(16)
    theirs = str(line.hear()["challenge"])
    proof = sign(config, JOIN, theirs, str(config["node"]))
    line.say({"node": config["node"], "proof": proof, "challenge": challenge})
    line.link.settimeout(None)
    message = line.hear()
    if not hmac.compare_digest(
        sign(config, START, challenge, str(message["words"])), message["proof"]
    ):
        sys.exit("what came over the connection to the first host is not this run's")
    words = json.loads(message["words"])
    trouble = odd(words)
    if trouble:
        line.say({"trouble": trouble})
        sys.exit(trouble)
    try:
        daemon = subprocess.Popen(without_choice(words), stdin=subprocess.DEVNULL)
    except OSError as error:
        line.say({"trouble": str(error)})
        sys.exit(str(error))
    line.say({"trouble": ""})
    sys.exit(daemon.wait())


def connected(config: dict[str, Any]) -> SignedLine:
    """Connect to the first host, trying until the time for it is up."""
    end = config["began"] + config["join_seconds"]
    while True:
        link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # From the address that peers know this host by.
        link.bind((config["address"], 0))
        link.settimeout(max(0.5, end - time.monotonic()))
        try:
            link.connect((config["master"], config["port"]))
        except OSError as error:
            link.close()
            if time.monotonic() > end:
                sys.exit(
                    f"connect to {config['master']}:{config['port']}: {error.strerror or error}"
                )
            time.sleep(0.2)
        else:
            return SignedLine(link)


def without_choice(words: list[str]) -> list[str]:
    """Leave out of a daemon's command the interface that the first host chose for itself."""
    if CHOSEN not in os.environ:
        return words
    for at in range(len(words) - 2):
        if words[at + 1] == "oob_tcp_if_include":
            return words[:at] + words[at + 3 :]
    return words


def odd(words: list[str]) -> str:
    """Say why words are not the command of a daemon as mpirun makes it, or return an empty text."""
    if not words or words[0] != "orted":
        return f"mpirun asks for {words[:1]}, and only orted is started"
    at = 1
    while at < len(words):
        if words[at] in ("-mca", "--mca"):
            if not _PARAMETER.match("".join(words[at + 1 : at + 2])) or at + 2 >= len(words):
                return f"mpirun gives orted a parameter {words[at + 1 : at + 3]}"
            at += 3
        elif _OPTION.match(words[at]):
            at += 1
        else:
            return f"mpirun gives orted a word {words[at]!r}"
    return ""
