"""A whole lab: up, down, what it runs, and what is done to its hosts."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from remedy.errors import LabError
from remedy.files import write_whole
from remedy.lab import faults, machine, net, processes, record, rootfs, venv
from remedy.lab.events import Listener, emit
from remedy.lab.host import Host
from remedy.lab.options import UpOptions
from remedy.lab.paths import LabPaths
from remedy.lab.record import LabRecord
from remedy.lab.status import LabStatus, look
from remedy.text import counted

T = TypeVar("T")

INVENTORY = Path(__file__).with_name("inventory.py")
# Work on hosts is waiting for other processes, not computing.
_THREADS = 16


class Lab:
    """A named lab of this machine.

    Args:
        paths: which one.
        listener: is called with every event; None for nobody.
    """

    def __init__(self, paths: LabPaths | None = None, listener: Listener | None = None) -> None:
        self.paths = paths or LabPaths.of()
        self.listener = listener

    # -- looking ----------------------------------------------------------------------------------

    def record(self) -> LabRecord:
        """Return the record of the running lab.

        Raises:
            LabError: it does not run.
        """
        lab = record.read(self.paths)
        if lab is None:
            raise LabError(
                f"the lab {self.paths.name!r} is not running", next_step="Start it: remedy lab up"
            )
        return lab

    def host(self, name: str) -> Host:
        """Return one of its hosts.

        Raises:
            LabError: the lab does not run.
            UsageError: it has no such host.
        """
        lab = self.record()
        return Host(self.paths, lab, lab.host(name))

    def hosts(self) -> list[Host]:
        """Return all of its hosts.

        Raises:
            LabError: the lab does not run.
        """
        lab = self.record()
        return [Host(self.paths, lab, host) for host in lab.hosts]

    def status(self) -> LabStatus:
        """Return what the lab runs, and the state of each host."""
        machine.require()
        lab = record.read(self.paths)
        if lab is None:
            return LabStatus(
                name=self.paths.name, running=False, inventory=None, python=None, hosts=[]
            )
        return LabStatus(
            name=self.paths.name,
            running=True,
            inventory=str(self.paths.inventory),
            python=lab.python,
            hosts=_each(self.hosts(), look),
        )

    # -- up and down ------------------------------------------------------------------------------

    def up(self, options: UpOptions) -> LabRecord:
        """Start the lab, or let it grow, until that many hosts answer ssh.

        Hosts of a running lab that are off are booted.

        Returns:
            the lab's record.

        Raises:
            LabError: it cannot be started; what was begun stays, for `down` or the next `up`.
        """
        machine.require()
        options.check()
        faults.check_names(options.faults)
        with record.locked(self.paths, self.listener):
            with record.machine_locked(self.paths, self.listener):
                lab = self._prepare(options)
            fresh, absent = [], []
            for host in (Host(self.paths, lab, member) for member in lab.hosts):
                if not (host.folder / "machine-id").exists():
                    fresh.append(host)
                elif host.leader() is None:
                    absent.append(host)
            _each(fresh, Host.create)
            for host in [*fresh, *absent]:
                host.start()
            emit(self.listener, "host", f"booting {counted(len(fresh) + len(absent), 'host')}")
            self._trust(fresh)
            _each([*fresh, *absent], self._answering)
            lab = lab.model_copy(update={"phase": "up"})
            record.write(self.paths, lab)
            for host in fresh:
                self._break(host.name, options.faults)
        return self.record()

    def down(self) -> bool:
        """Remove the lab, or whatever is left of it.

        Returns:
            whether anything was there.

        Raises:
            LabError: a part of it cannot be removed.
        """
        machine.require()
        with record.locked(self.paths, self.listener):
            processes.kill_hosts(self.paths, None)
            existed = net.down(self.paths) > 0 or self.paths.folder.exists()
            machine.remove_tree(self.paths.folder)
            with record.machine_locked(self.paths, self.listener):
                self._restore_machine()
        if existed:
            emit(self.listener, "down", f"the lab {self.paths.name!r} is removed")
        return existed

    def _restore_machine(self) -> None:
        """Undo what labs changed on this machine, where this one was the last."""
        labs = self.paths.folder.parent
        if labs.exists() and any(labs.iterdir()):
            return
        machine.restore_limits(self.paths.base)
        for path in processes.cgroups():
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            labs.rmdir()

    def _prepare(self, options: UpOptions) -> LabRecord:
        """Make everything that the hosts share and that does not exist yet."""
        paths = self.paths
        lab = record.read(paths)
        kind = (options.prefix, options.containers, options.mpi, options.release, options.life)
        if lab is not None and (lab.prefix, lab.docker, lab.mpi, lab.release, lab.life) != kind:
            raise LabError(
                f"the lab {paths.name!r} runs already, with different names or a different kind of host",
                next_step="`remedy lab down` first.",
            )
        if lab is not None and len(lab.hosts) > options.count:
            raise LabError(
                f"the lab {paths.name!r} runs already, with {counted(len(lab.hosts), 'host')}",
                next_step="`remedy lab down` first for a smaller one.",
            )
        if lab is not None and lab.life == "slurm" and len(lab.hosts) < options.count:
            raise LabError(
                f"the lab {paths.name!r} is a Slurm cluster, which does not grow: each host knows all others "
                "from its first boot on",
                next_step="`remedy lab down` first.",
            )
        if lab is not None and net.capacity(lab.cluster) < options.count:
            raise LabError(
                f"the network of the lab {paths.name!r}, {lab.cluster}, holds "
                f"{net.capacity(lab.cluster)} hosts, and cannot grow to {options.count}",
                next_step="`remedy lab down` first.",
            )
        if lab is None:
            lab = self._new(options)
        names = options.names()
        known = {host.name: host for host in lab.hosts}
        hosts = [
            known.get(name) or net.make_host(name, number, lab.management, lab.cluster)
            for number, name in enumerate(names, 1)
        ]
        if [host.name for host in hosts[: len(lab.hosts)]] != [host.name for host in lab.hosts]:
            raise LabError(
                f"a lab of {counted(len(lab.hosts), 'host')} cannot grow to {options.count}: "
                "their names have fewer digits",
                next_step="`remedy lab down` first.",
            )
        lab = lab.model_copy(update={"hosts": hosts, "phase": "starting"})
        # Written before anything is made that it describes.
        record.write(paths, lab)
        machine.raise_limits(self.paths.base)
        if not paths.key.exists():
            machine.tool(
                "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "remedy-lab", "-f", paths.key
            )
        if not net.is_up(paths):
            emit(self.listener, "network", f"management {lab.management}, cluster {lab.cluster}")
            net.up(paths, lab.management)
        shutil.copyfile(INVENTORY, paths.inventory)
        return lab

    def _new(self, options: UpOptions) -> LabRecord:
        """Begin a lab: its folder, its root file system, its addresses."""
        paths = self.paths
        root = rootfs.ensure(paths.base, options, self.listener)
        # What a lab of that name may have left behind when its folder was removed by hand.
        processes.kill_hosts(paths, None)
        net.down(paths)
        machine.remove_tree(paths.folder)
        environment = venv.find(root, foreign=bool(options.release))
        if environment is None:
            missing = (
                "the hosts have no torch: no interpreter of this machine with torch runs in them"
            )
            emit(self.listener, "torch", f"{missing}; {venv.VARIABLE} can name one")
        management, cluster = net.choose(net.networks_in_use(), options.count)
        for folder in (paths.folder.parent, paths.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        return LabRecord(
            name=paths.name,
            phase="starting",
            prefix=options.prefix,
            root=str(root),
            docker=options.containers,
            mpi=options.mpi,
            release=options.release,
            life=options.life,
            management=management,
            cluster=cluster,
            key=str(paths.key),
            known_hosts=str(paths.known_hosts),
            python=environment.python if environment else None,
            binds=list(environment.binds) if environment else [],
            hosts=[],
        )

    # -- what is done to hosts --------------------------------------------------------------------

    def break_(self, name: str, fault_names: Sequence[str]) -> None:
        """Break a host.

        Raises:
            UsageError: no such host or fault.
            LabError: it could not be broken.
        """
        faults.check_names(fault_names)
        with record.locked(self.paths, self.listener):
            self._break(name, fault_names)

    def reboot(self, name: str) -> None:
        """Reboot a host and wait until it answers."""
        self.host(name).reboot()

    def start(self, name: str) -> None:
        """Boot a host that is off, and wait until it answers."""
        host = self.host(name)
        if host.leader() is None:
            host.start()
        host.wait()

    def stop(self, name: str) -> None:
        """Power a host off."""
        self.host(name).stop()

    def kill(self, name: str) -> None:
        """Take a host's power away: the node is lost."""
        self.host(name).kill()

    def reset(self, *names: str) -> None:
        """Bring hosts back to the state of a fresh installation, as the same machines, trusted.

        Args:
            names: their inventory names; without any, all hosts.
        """
        self._again(names or tuple(host.name for host in self.hosts()), new=False)

    def replace(self, name: str) -> None:
        """Put another machine in a host's place: same addresses, new disk and identity.

        The new key is not put into the lab's known_hosts: whether to trust it is the user's
        decision.
        """
        self._again((name,), new=True)

    def _again(self, names: Sequence[str], *, new: bool) -> None:
        """Boot hosts from an empty disk."""
        with record.locked(self.paths, self.listener):
            hosts = [self.host(name) for name in names]
            _each(hosts, lambda host: host.rebuild(new=new))
            for host in hosts:
                self._note(host.name, [])
            if not new:
                self._trust(hosts)
        for name in names:
            emit(self.listener, "host", "replaced" if new else "fresh again", name)

    def _break(self, name: str, fault_names: Iterable[str]) -> None:
        """Break a host, and note it."""
        for fault in fault_names:
            host = self.host(name)
            faults.get(fault).inject(host)
            now = [] if fault == faults.REPLACED else self.host(name).record.faults
            self._note(name, [*(previous for previous in now if previous != fault), fault])
            emit(self.listener, "fault", fault, name)

    def _note(self, name: str, broken: list[str]) -> None:
        """Note what is broken on a host."""
        lab = self.record()
        hosts = [
            host.model_copy(update={"faults": broken}) if host.name == name else host
            for host in lab.hosts
        ]
        record.write(self.paths, lab.model_copy(update={"hosts": hosts}))

    def _trust(self, hosts: Sequence[Host]) -> None:
        """Put hosts' keys into the lab's known_hosts, in place of older ones."""
        try:
            lines = self.paths.known_hosts.read_text("ascii").splitlines()
        except FileNotFoundError:
            lines = []
        # By whatever name or address a line knows them: two keys for one host contradict each other.
        old = {word for host in hosts for word in (host.name, host.record.management_address)}
        lines = [line for line in lines if old.isdisjoint(line.split(" ", 1)[0].split(","))]
        for host in hosts:
            lines.append(f"{host.record.management_address},{host.name} {host.public_key()}")
        write_whole(self.paths.known_hosts, "\n".join(lines) + "\n", mode=0o600)

    def _answering(self, host: Host) -> None:
        """Wait for a host, and report that it answers."""
        host.wait()
        emit(self.listener, "host", "answers", host.name)


def _each(hosts: Sequence[Host], work: Callable[[Host], T]) -> list[T]:
    """Do the work on many hosts at a time.

    Returns:
        the results, in the order of the hosts.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, hosts))
