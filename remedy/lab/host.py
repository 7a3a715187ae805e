"""One host of a lab: what it is made of, how it boots, how a command runs in it."""

from __future__ import annotations

import shlex
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import LabError
from remedy.lab import machine, net, processes, rootfs, slurm
from remedy.lab.disk import Disk
from remedy.lab.life import furnish
from remedy.lab.paths import LabPaths
from remedy.lab.record import HostRecord, LabRecord

BOOT = Path(__file__).with_name("boot.sh")

# The name of a host before anybody changes it: the same on all of them, as on cloned images.
FRESH_NAME = "node"
FRESH_HOSTS = f"""\
127.0.0.1\tlocalhost
127.0.1.1\t{FRESH_NAME}

# The following lines are desirable for IPv6 capable hosts
::1     localhost ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
"""

# systemd's own signal for "power off" to PID 1 is what nspawn sends on SIGTERM; a host that does
# not follow within this time is killed.
POWER_OFF_SECONDS = 15.0
# A host boots in two or three, and in five where twelve boot at a time on two cores; the rest is for machines
# that are given little time themselves.
PATIENCE_SECONDS = 180.0


@dataclass(frozen=True)
class Host:
    """A host of a running lab.

    Args:
        paths: which lab.
        lab: the lab's record.
        record: the host's own record.
    """

    paths: LabPaths
    lab: LabRecord
    record: HostRecord

    @property
    def name(self) -> str:
        """Its inventory name."""
        return self.record.name

    @property
    def folder(self) -> Path:
        """What it is made of, and its boot log."""
        return self.paths.host(self.name)

    @property
    def _boot_log(self) -> Path:
        return self.folder / "boot.log"

    @property
    def disk(self) -> Disk:
        """Its disk, to be written to only while it is off."""
        return Disk(self.folder, Path(self.lab.root))

    @property
    def peers(self) -> list[HostRecord]:
        """The lab's other hosts."""
        return [host for host in self.lab.hosts if host.name != self.name]

    @property
    def machine(self) -> str:
        """The name of its network namespace and of its machine."""
        return self.paths.machine(self.name)

    # -- making -----------------------------------------------------------------------------------

    def create(self) -> None:
        """Make its identity and an empty disk, in the state a fresh installation has."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "root").mkdir(exist_ok=True)
        self.new_identity()
        self.wipe()

    def new_identity(self) -> None:
        """Make a new ssh host key and a new machine-id: another machine at the same place."""
        key = self.folder / "ssh_host_ed25519_key"
        for old in (key, key.with_suffix(".pub")):
            old.unlink(missing_ok=True)
        machine.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", FRESH_NAME, "-f", key)
        (self.folder / "machine-id").write_text(f"{uuid.uuid4().hex}\n", encoding="ascii")

    def wipe(self) -> None:
        """Put its disk into the state of a fresh installation. It must be off; its identity stays."""
        disk = self.disk
        disk.wipe()
        key = self.folder / "ssh_host_ed25519_key"
        disk.put("etc/hostname", f"{FRESH_NAME}\n")
        disk.put("etc/hosts", FRESH_HOSTS)
        disk.put("etc/machine-id", (self.folder / "machine-id").read_text("ascii"), mode=0o444)
        disk.put("etc/ssh/ssh_host_ed25519_key", key.read_text("ascii"), mode=0o600)
        disk.put("etc/ssh/ssh_host_ed25519_key.pub", self.public_key() + "\n")
        disk.put(rootfs.AUTHORIZED_KEYS, self.paths.key.with_suffix(".pub").read_text("ascii"))
        furnish(disk, self.lab.life)
        if self.lab.life == "slurm":
            slurm.furnish(disk, self.lab, self.record, self.paths)
        if any(Path(bind).is_relative_to("/root") for bind in self.lab.binds):
            # Other users are to reach the environment that lies below.
            disk.make_folder(Path("root")).chmod(0o711)

    def public_key(self) -> str:
        """Return its ssh host key, as it stands in a known_hosts file."""
        words = (self.folder / "ssh_host_ed25519_key.pub").read_text("ascii").split()
        return f"{words[0]} {words[1]}"

    # -- booting ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Boot it; returns at once."""
        folder, name = self.folder, self.machine
        (folder / "switch.batch").write_text(net.switch_batch(self.record, name), encoding="ascii")
        (folder / "host.batch").write_text(
            net.host_batch(self.record, self.lab.management), encoding="ascii"
        )
        (folder / "overlay").write_text(self.disk.mount_options(), encoding="ascii")
        # Docker makes groups in every hierarchy: each host's must lie below its own.
        groups = processes.make_cgroups(every=self.lab.docker)
        (folder / "cgroups").write_text(
            "".join(f"{path / name}\n" for path in groups), encoding="ascii"
        )
        nspawn = [
            "systemd-nspawn",
            "--quiet",
            "--boot",
            "--keep-unit",
            "--register=no",
            "--settings=no",
            f"--directory={folder}/root",
            f"--machine={name}",
            # The kernel's host name until the host reads its /etc/hostname.
            "--hostname=localhost",
            f"--network-namespace-path=/run/netns/{name}",
            # A host is a machine, not a sandbox: firewalls, chattr and remounts must work in it.
            "--capability=all",
            "--system-call-filter=@keyring",
            "--system-call-filter=bpf",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
            "--console=read-only",
            *(f"--bind-ro={path}" for path in self.lab.binds),
            *(["--tmpfs=/var/lib/docker"] if self.lab.docker else []),
            # What systemd reads as the kernel's command line: 256 and newer refuse control groups of
            # version 1, where this machine has these, without this variable.
            "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
        ]
        command = ["/bin/sh", str(BOOT), str(folder), self.paths.switch, name, *nspawn]
        processes.launch(command, name=name, log=self._boot_log)

    def wait(self, seconds: float = PATIENCE_SECONDS, *, unlike: str | None = None) -> None:
        """Wait until its sshd answers.

        Args:
            seconds: how long at most.
            unlike: a boot-id that does not count, because it is that of the boot that ends.

        Raises:
            LabError: it did not answer in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # The cheap question first: the other one looks through this machine's processes.
            if self.answers() and (unlike is None or self.boot_id() not in {unlike, None}):
                if self.lab.life != "bare":
                    # Daemons come up after sshd.
                    remaining = max(deadline - time.monotonic(), 1.0)
                    self.run(["systemctl", "is-system-running", "--wait"], seconds=remaining)
                return
            time.sleep(0.05)
        raise LabError(
            f"{self.name} did not answer ssh within {seconds:g} seconds; its boot log ends with: "
            f"{self._end_of_boot_log()}",
            next_step=f"The whole log is {self._boot_log}.",
        )

    def answers(self) -> bool:
        """Return whether its sshd sends its banner."""
        try:
            # Short: a first packet lost while the link comes up is sent again only a second later.
            with socket.create_connection((self.record.management_address, 22), 0.3) as connection:
                connection.settimeout(2.0)
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _end_of_boot_log(self) -> str:
        """Return the last lines of its boot log: a test that fails removes its lab, and the log with it."""
        try:
            text = self._boot_log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-5:]) or "nothing"

    def boot_id(self) -> str | None:
        """Return the kernel's name for its present boot, or None while it is off."""
        try:
            return self.run(["cat", "/proc/sys/kernel/random/boot_id"]).stdout.strip() or None
        except LabError:
            return None

    def stop(self) -> None:
        """Power it off in good order; one that does not follow is killed."""
        carriers = processes.find(self.paths, self.name)
        if carriers.nspawn:
            machine.tool("kill", "-TERM", *map(str, carriers.nspawn), check=False)
            machine.wait_gone([*carriers.supervisors, *carriers.nspawn], POWER_OFF_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Take its power away."""
        processes.kill_hosts(self.paths, [self.name])

    def reboot(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Let it reboot itself, and wait until it answers again.

        Args:
            seconds: how long at most.

        Raises:
            LabError: it is off, or did not come back.
        """
        before = self.boot_id()
        if before is None:
            raise LabError(
                f"{self.name} is not running", next_step="`remedy lab up` starts it again."
            )
        self.run(["systemctl", "reboot"])
        self.wait(seconds, unlike=before)

    def rebuild(self, *, new: bool) -> None:
        """Take its power away and boot it from an empty disk."""
        self.kill()
        if new:
            self.new_identity()
        self.wipe()
        self.start()
        self.wait()

    # -- inside -----------------------------------------------------------------------------------

    def leader(self) -> int | None:
        """Return the process of this machine that is the host's PID 1, or None while it is off."""
        for nspawn in processes.find(self.paths, self.name).nspawn:
            for child in machine.children(nspawn):
                try:
                    status = Path(f"/proc/{child}/status").read_text(
                        encoding="ascii", errors="replace"
                    )
                except OSError:
                    continue
                ids = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
                if ids.split()[-1:] == ["1"]:
                    return child
        return None

    def run(
        self, command: Sequence[str] | str, *, stdin: str = "", seconds: float = PATIENCE_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root, without ssh, so that it works whatever is broken.

        Args:
            command: an argument list, or a text for its ``sh``.
            stdin: what the command reads.
            seconds: when to give up.

        Raises:
            LabError: it is off, or the command did not end in time.
        """
        leader = self.leader()
        if leader is None:
            raise LabError(
                f"{self.name} is not running", next_step="`remedy lab up` starts it again."
            )
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        enter = ["nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--net", "--pid"]
        enter += ["--cgroup", "--root", "--wd", "--"]
        limit = ["timeout", "--kill-after=2", str(seconds)]
        environment = [
            "env",
            "-i",
            f"PATH={processes.PATH}",
            "HOME=/root",
            "USER=root",
            "LC_ALL=C.UTF-8",
        ]
        try:
            return subprocess.run(
                [*enter, *environment, *limit, *words],
                check=False,
                input=stdin,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                # The host's own timeout ends the command, and what it started, before this one.
                timeout=seconds + 10,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"{self.name}: `{shlex.join(words)}` did not end within {seconds:.0f} seconds",
                next_step=machine.AGAIN,
            ) from error

    def must(self, command: Sequence[str] | str, *, stdin: str = "") -> str:
        """Run a command in it that has to succeed.

        Returns:
            what it wrote.

        Raises:
            LabError: it failed.
        """
        done = self.run(command, stdin=stdin)
        if done.returncode != 0:
            shown = command if isinstance(command, str) else shlex.join(command)
            raise LabError(
                f"{self.name}: `{shown}` failed ({done.returncode}): {done.stderr.strip()[-300:]}",
                next_step=machine.AGAIN,
            )
        return done.stdout

    def read(self, path: str) -> bytes:
        """Read a file in it.

        Args:
            path: absolute.

        Raises:
            LabError: it cannot be read.
        """
        return self.must(["cat", "--", path]).encode("utf-8", "surrogateescape")

    def write(self, path: str, data: bytes) -> None:
        """Write a file in it, keeping owner and mode of one that is there.

        Args:
            path: absolute.
            data: the content.

        Raises:
            LabError: it cannot be written.
        """
        text = data.decode("utf-8", "surrogateescape")
        self.must(["sh", "-c", 'cat >"$1"', "sh", path], stdin=text)

    def ssh(self, command: Sequence[str] = (), *, user: str = "root") -> list[str]:
        """Return the ssh command line that leads to it.

        Args:
            command: what to run there, one word for its shell or an argument list; without it, a
                shell.
            user: as whom.
        """
        options = [
            f"IdentityFile={self.paths.key}",
            "IdentitiesOnly=yes",
            f"UserKnownHostsFile={self.paths.known_hosts}",
            "GlobalKnownHostsFile=/dev/null",
            "StrictHostKeyChecking=yes",
            "LogLevel=ERROR",
        ]
        words = [word for option in options for word in ("-o", option)]
        where = f"{user}@{self.record.management_address}"
        line = command[0] if len(command) == 1 else shlex.join(command)
        return [
            "ssh",
            "-F",
            "/dev/null",
            *words,
            where,
            *([line] if line else []),
        ]
