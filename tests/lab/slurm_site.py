"""remedy on the first host of a Slurm cluster of lab hosts, inside a job, as salloc starts it."""

from __future__ import annotations

import base64
import io
import json
import shlex
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import remedy
from remedy.lab.host import Host
from tests import stub
from tests.lab.conftest import Cluster
from tests.lab.site import RemedyOutput

SOURCES = "/opt/remedy"
FOLDER = "/root/site"
COMMAND = "/usr/local/bin/remedy"
# What a proof may leave behind on a host.
LEFT = (
    "ls -d /tmp/remedy-* 2>/dev/null;"
    " pgrep -af '[w]orker.py|[s]lurmstepd: [[]|[s]run|[i]mport main; sys.argv'; true"
)

_PROGRAM = """\
#!/bin/sh
PYTHONPATH={sources} exec {python} -c \
'import sys; from remedy.cli.main import main; sys.argv[0] = "remedy"; main()' "$@"
"""


@dataclass(frozen=True)
class SlurmSite:
    """A Slurm cluster with remedy on its first host.

    Args:
        cluster: hosts that are Slurm nodes.
    """

    cluster: Cluster

    @property
    def login(self) -> Host:
        """The host that remedy runs on."""
        return self.cluster.host(self.cluster.hosts[0])

    def install(self) -> None:
        """Put remedy, the lab's key and its inventory onto the first host; right names onto all of them."""
        lab = self.cluster.lab
        record = lab.record()
        python = {stub.install(self.cluster.host(name)) for name in self.cluster.hosts}
        document = {**json.loads(lab.paths.state.read_text("utf-8")), "python": python.pop()}
        program = _PROGRAM.format(sources=SOURCES, python=record.python)
        self._unpack("/", _packed(lab.paths.key, lab.paths.known_hosts))
        self._unpack(FOLDER, _packed(lab.paths.inventory, name="inventory.py"))
        self._unpack(SOURCES, _packed(Path(remedy.__file__).parent, name="remedy"))
        self.login.write(f"{FOLDER}/state.json", json.dumps(document).encode())
        self.settings("verify: {sizes: [8]}\n")
        self.login.write(COMMAND, program.encode())
        self.login.must(["chmod", "755", COMMAND])
        entries = "".join(f"{host.cluster_address} {host.name}\n" for host in record.hosts)
        for name in self.cluster.hosts:
            self.cluster.host(name).must("cat >/etc/hosts", stdin=f"127.0.0.1 localhost\n{entries}")

    def _unpack(self, folder: str, packed: bytes) -> None:
        self.login.must(
            f"mkdir -p {folder} && base64 -d | tar -C {folder} -xz",
            stdin=base64.b64encode(packed).decode("ascii"),
        )

    def settings(self, text: str) -> None:
        """Write remedy.yaml."""
        self.login.write(f"{FOLDER}/remedy.yaml", text.encode())

    def remedy(
        self, *words: str, job: str = "--nodes=4", before: str = "", launcher: str = "slurm"
    ) -> RemedyOutput:
        """Run ``remedy WORDS`` to its end inside a new job; outside of any where ``job`` is empty.

        Args:
            words: of the command, which the inventory follows.
            job: options of salloc.
            before: text for the shell that runs the command.
            launcher: of the ranks.
        """
        line = self.command(*words, job=job, before=before, launcher=launcher)
        done = self.cluster.run(self.login.name, line, seconds=300)
        output = RemedyOutput(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in output.text, output.text
        return output

    @staticmethod
    def command(
        *words: str, job: str = "--nodes=4", before: str = "", launcher: str = "slurm"
    ) -> str:
        """Return the text for a shell of the first host that runs ``remedy WORDS`` inside a new job."""
        line = (
            f"{before} remedy {words[0]} inventory.py --launcher {launcher} {shlex.join(words[1:])}"
        )
        allocate = (
            f"salloc --quiet {job} sh -c {shlex.quote(f'exec env {line}')}"
            if job
            else f"env {line}"
        )
        return f"cd {FOLDER} && {allocate}"

    def start(self, *words: str, job: str = "--nodes=4") -> subprocess.Popen[str]:
        """Start ``remedy WORDS`` inside a new job as a unit of the first host; the result waits for it."""
        line = self.command(*words, job=job)
        unit = [
            "systemd-run",
            "--quiet",
            "--wait",
            "--pipe",
            "--unit=proof",
            "--collect",
            "sh",
            "-c",
            line,
        ]
        return subprocess.Popen(
            self.login.ssh(unit),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def left(self) -> dict[str, str]:
        """Return what proofs have left behind, by host."""
        found = {name: self.cluster.run(name, LEFT).stdout for name in self.cluster.hosts}
        return {name: text for name, text in found.items() if text.strip()}


def _packed(*paths: Path, name: str = "") -> bytes:
    """Return files as a tar archive, links followed: at their own paths, or under a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", dereference=True) as archive:
        for path in paths:
            archive.add(path, name or str(path), filter=_no_cache)
    return buffer.getvalue()


def _no_cache(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member
