"""The root file system that all lab hosts share, read-only: built once, then kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from remedy.errors import LabError
from remedy.lab import slurm, sources
from remedy.lab.events import Listener, emit
from remedy.lab.life import SLEEPERS, SOCKETS, STOPPED
from remedy.lab.machine import processes, remove_tree, tool
from remedy.lab.options import UpOptions

# What a minimal installation of a GPU server has, as far as remedies and the probe look at it.
BASE = [
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3", "procps", "hostname"),
    *("nftables", "iptables", "iproute2", "iputils-ping"),
    *("kmod", "e2fsprogs", "util-linux", "lsof", "psmisc"),
]
# These need a configured system to be installed in. firewalld recommends ipset, and 0.9 needs it for sets.
EXTRA = ["ufw", "firewalld", "ipset"]
DOCKER = ["docker.io", "podman"]
# Which a release may lack: docker itself was part of docker.io before Debian 13.
SPLIT_OFF = {"docker.io": "docker-cli"}
# Open MPI, and what the frameworks that are no torch load from the system.
MPI = ["openmpi-bin", "libgomp1"]
# debootstrap looks for the dependencies of BASE in the components it is given; Ubuntu keeps some of
# EXTRA in universe.
COMPONENTS = {"main", "universe"}

# Raise it when `_configure` changes, so that kept root file systems are built anew.
RECIPE = 2

USERS = {
    # name -> sudoers line: with sudo, with sudo after a password, without sudo
    "trainer": "trainer ALL=(ALL:ALL) NOPASSWD: ALL",
    "guarded": "guarded ALL=(ALL:ALL) ALL",
    "nosudo": "",
}
GUARDED_PASSWORD = "lab-guarded"  # noqa: S105 (of a throw-away host that nothing outside can reach)

AUTHORIZED_KEYS = "etc/ssh/lab_authorized_keys"

_SSHD = f"""\
UseDNS no
GSSAPIAuthentication no
PermitRootLogin prohibit-password
PasswordAuthentication no
AuthorizedKeysFile .ssh/authorized_keys /{AUTHORIZED_KEYS}
HostKey /etc/ssh/ssh_host_ed25519_key
"""

# systemd-nspawn mounts the controllers of control groups version 1 read-only; dockerd writes to them.
_DOCKER_UNIT = """\
[Service]
ExecStartPre=/bin/sh -c 'for d in /sys/fs/cgroup/*; do \
    if mountpoint -q "$$d"; then mount -o remount,bind,rw "$$d"; fi; done'
"""

# A host's disk is an overlay already, and an overlay on top of that is refused.
_PODMAN_STORAGE = """\
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
"""

# A host of a lab has no use for these, and sixty-four of them would have the machine busy.
_MASKED = [
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "getty.target", "console-getty.service"),
    *("systemd-udevd.service", "systemd-journal-flush.service", "systemd-resolved.service"),
    *("systemd-networkd-wait-online.service", "systemd-timesyncd.service"),
    # Two fifths of what a boot costs, for devices, disks and kernels that no host of a lab has.
    *("dev-hugepages.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount"),
    *("sys-kernel-config.mount", "sys-fs-fuse-connections.mount", "systemd-pstore.service"),
    *(f"modprobe@{m}.service" for m in ("configfs", "dm_mod", "drm", "efi_pstore", "fuse", "loop")),
    *("systemd-modules-load.service", "systemd-tmpfiles-setup-dev.service"),
    *("systemd-sysusers.service", "systemd-update-utmp.service"),
    "systemd-update-utmp-runlevel.service",
]
_MASKED_GENERATORS = [
    *("cryptsetup", "debug", "getty", "gpt-auto", "hibernate-resume", "integritysetup", "run"),
    *("system-update", "veritysetup"),
]
# Installed and off, as after a plain installation: which firewall runs is what remedies find out.
_FIREWALLS = ("ufw.service", "firewalld.service", "nftables.service")
_DISABLED = [*_FIREWALLS, "docker.service", "docker.socket"]


def ensure(base: Path, options: UpOptions, listener: Listener | None) -> Path:
    """Have the root file system, building it if there is none of this recipe.

    Returns:
        its folder.

    Raises:
        LabError: it could not be built.
    """
    archive = sources.find()
    if options.release:
        archive = replace(archive, suite=options.release)
    asleep = options.life == "asleep"
    extra = (DOCKER if options.containers else []) + (MPI if options.mpi else [])
    extra += SLEEPERS if asleep else []
    has_slurm = options.life == "slurm"
    extra += slurm.PACKAGES if has_slurm else []
    recipe = [str(RECIPE), _SSHD, _DOCKER_UNIT, archive.suite, *BASE, *EXTRA, *extra]
    recipe += [*_MASKED, *_MASKED_GENERATORS]
    stamp = _stamp([*recipe, *SOCKETS, *STOPPED] if asleep else recipe)
    parts = (
        options.release,
        options.containers and "docker",
        options.mpi and "mpi",
        asleep and "asleep",
        has_slurm and "slurm",
    )
    variant = "-".join(["root", *(part for part in parts if part)])
    target = base / f"{variant}-{stamp}"
    if target.is_dir():
        return target
    emit(
        listener,
        "root",
        f"building the hosts' root file system ({archive.suite}), once; a minute or two",
    )
    part = base / f"{target.name}.part"
    remove_tree(part)
    tool("cp", "-a", _plain(base, archive), part)
    if extra:
        _install(part, archive, extra)
    _configure(part, docker=options.containers, asleep=asleep)
    if has_slurm:
        tool("chroot", part, "systemctl", "disable", *slurm.STARTED, slurm.CONTROLLER)
    part.rename(target)
    _remove_old(base, variant, target)
    emit(listener, "root", f"built {target}")
    return target


def _plain(base: Path, archive: sources.Archive) -> Path:
    """Have what all root file systems of a release begin as: BASE and EXTRA, built once."""
    plain = base / f"plain-{archive.suite}-{_stamp([archive.mirror, *BASE, *EXTRA])}"
    if not plain.is_dir():
        part = base / f"{plain.name}.part"
        remove_tree(part)
        _bootstrap(base, part, archive)
        _install(part, archive, EXTRA)
        for old in base.glob(f"plain-{archive.suite}-{'[0-9a-f]' * 12}"):
            remove_tree(old)
        part.rename(plain)
    return plain


def _stamp(parts: list[str]) -> str:
    """Name a recipe by its content."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _bootstrap(base: Path, part: Path, archive: sources.Archive) -> None:
    """Install the base system.

    Args:
        base: the folder of all labs; downloaded packages are kept there.
        part: where to build.
        archive: where from.
    """
    cache = base / "packages"
    cache.mkdir(exist_ok=True)
    components = [part for part in archive.components if part in COMPONENTS]
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--components={','.join(components)}",
        f"--include={','.join(BASE)}",
        f"--cache-dir={cache}",
    ]
    if archive.keyring:
        command.append(f"--keyring={archive.keyring}")
    log = base / "build.log"
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [*command, archive.suite, str(part), archive.mirror],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        raise LabError(
            f"debootstrap could not build {archive.suite} from {archive.mirror}",
            next_step=f"Its output is in {log}; try again once the archive can be reached.",
        )


def _install(part: Path, archive: sources.Archive, packages: list[str]) -> None:
    """Install what debootstrap cannot configure, with this machine's own apt configuration.

    Args:
        part: the new root.
        archive: where from.
        packages: what to install.
    """
    etc = part / "etc"
    for name in ("apt/apt.conf", "apt/apt.conf.d", "apt/trusted.gpg.d", "apt/keyrings"):
        _copy(Path("/etc") / name, etc / name)
    for name in ("usr/share/keyrings", "usr/local/share/ca-certificates"):
        _copy(Path("/") / name, part / name)
    _copy(Path("/etc/ssl/certs/ca-certificates.crt"), etc / "ssl/certs/ca-certificates.crt")
    signed = f"[signed-by={archive.keyring}] " if archive.keyring else ""
    components = " ".join(part for part in archive.components if part in COMPONENTS)
    (etc / "apt/sources.list").write_text(
        f"deb {signed}{archive.mirror} {archive.suite} {components}\n", encoding="utf-8"
    )
    policy = part / "usr/sbin/policy-rc.d"
    # 101: "action forbidden", so that no service starts on this machine, outside of any host.
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    policy.chmod(0o755)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    log = part.parent / "build.log"
    with log.open("a", encoding="utf-8") as out:

        def apt(program: str, *words: str) -> int:
            """Run a program of apt in the new root."""
            return subprocess.run(
                ["chroot", str(part), program, "-q", *words],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
            ).returncode

        def must(*words: str) -> None:
            """Run apt-get in the new root, to its good end."""
            if apt("apt-get", *words) != 0:
                raise LabError(
                    f"apt-get {words[0]} failed in the hosts' new root file system",
                    next_step=f"Its output is in {log}.",
                )

        must("update")
        more = [SPLIT_OFF[name] for name in packages if name in SPLIT_OFF]
        more = [name for name in more if apt("apt-cache", "show", name) == 0]
        must("install", "-y", "--no-install-recommends", *packages, *more)
        must("clean")
    policy.unlink()
    shutil.rmtree(part / "var/lib/apt/lists", ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder of this machine, where it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.exists():
        shutil.copy2(source, target)


def _configure(part: Path, *, docker: bool, asleep: bool) -> None:
    """Make the new root one that a host boots from: users, sshd, nothing that identifies it."""
    (part / "etc/ssh/sshd_config.d/lab.conf").write_text(_SSHD, encoding="utf-8")
    for name, line in USERS.items():
        tool("chroot", part, "useradd", "--create-home", "--shell", "/bin/bash", name)
        if line:
            rule = part / "etc/sudoers.d" / name
            rule.write_text(f"{line}\n", encoding="utf-8")
            rule.chmod(0o440)
    subprocess.run(
        ["chroot", str(part), "chpasswd"],
        input=f"guarded:{GUARDED_PASSWORD}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    units = part / "etc/systemd/system"
    for unit in _MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    generators = part / "etc/systemd/system-generators"
    generators.mkdir(exist_ok=True)
    for name in _MASKED_GENERATORS:
        (generators / f"systemd-{name}-generator").symlink_to("/dev/null")
    if docker:
        (part / "etc/containers").mkdir(exist_ok=True)
        (part / "etc/containers/storage.conf").write_text(_PODMAN_STORAGE, encoding="utf-8")
        (units / "docker.service.d").mkdir()
        (units / "docker.service.d/lab.conf").write_text(_DOCKER_UNIT, encoding="utf-8")
    tool("chroot", part, "systemctl", "disable", *_DISABLED, check=False)
    if asleep:
        (units / "systemd-resolved.service").unlink()
        tool("chroot", part, "systemctl", "disable", *STOPPED)
        tool("chroot", part, "systemctl", "enable", *SOCKETS)
    # Every host gets its own.
    for key in (part / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (part / "etc/machine-id").write_text("", encoding="ascii")
    (part / "var/lib/dbus/machine-id").unlink(missing_ok=True)
    # No name server answers here, and glibc finds that out at once when none is named.
    (part / "etc/resolv.conf").unlink(missing_ok=True)
    (part / "etc/resolv.conf").write_text("", encoding="ascii")


def _remove_old(base: Path, variant: str, keep: Path) -> None:
    """Remove root file systems of older recipes that no host runs from."""
    used = {str(keep)}
    for state in base.glob("labs/*/state.json"):
        # Also of a lab whose hosts are all off, and also where that lab's record cannot be read.
        used.update(str(old) for old in base.glob("root*") if str(old) in state.read_text("utf-8"))
    for pid, words in processes():
        if words[0].endswith("systemd-nspawn"):
            mounts = Path(f"/proc/{pid}/mounts").read_text("utf-8", errors="replace")
            used.update(str(old) for old in base.glob("root*") if str(old) in mounts)
    for old in base.glob(f"{variant}-{'[0-9a-f]' * 12}"):
        if str(old) not in used:
            remove_tree(old)
