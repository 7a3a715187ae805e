"""A Slurm cluster of lab hosts: slurmctld on the first of them, slurmd on every one, munge between them.

Slurm talks over the management network, so that what is broken between the cluster addresses shows in proofs
and not in Slurm. A lab host may write to no control group, so steps are followed by their processes
(proctrack/linuxproc), and nothing binds or limits them.
"""

from __future__ import annotations

import hashlib
import os

from remedy.lab.disk import Disk
from remedy.lab.paths import LabPaths
from remedy.lab.record import HostRecord, LabRecord

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge"]
STARTED = ("munge.service", "slurmd.service")
"""What every host starts at boot; the first one slurmctld as well."""

CONTROLLER = "slurmctld.service"
CONF = "etc/slurm/slurm.conf"

_CONF = """\
ClusterName=lab
SlurmctldHost={controller}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
StateSaveLocation=/var/lib/slurm
SlurmdSpoolDir=/var/lib/slurm
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ReturnToService=2
KillWait=10
{nodes}PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def conf(hosts: list[HostRecord]) -> str:
    """Render the slurm.conf that all hosts share; the first of them is the controller."""
    cores = os.cpu_count() or 1
    nodes = "".join(
        f"NodeName={host.name} NodeAddr={host.management_address} CPUs={cores}\n" for host in hosts
    )
    first = hosts[0]
    return _CONF.format(controller=first.name, address=first.management_address, nodes=nodes)


def furnish(disk: Disk, lab: LabRecord, host: HostRecord, paths: LabPaths) -> None:
    """Write onto a host's disk what makes it a node of the lab's Slurm cluster at boot.

    Args:
        disk: of the host.
        lab: all hosts of the cluster.
        host: the one whose disk it is.
        paths: of the lab; its key makes munge's, which all hosts have to share.
    """
    disk.put("etc/hostname", f"{host.name}\n")
    disk.put(CONF, conf(lab.hosts))
    disk.put("etc/default/slurmd", f"SLURMD_OPTIONS='-N {host.name}'\n")
    disk.put("etc/munge/munge.key", _munge_key(paths), mode=0o400)
    keeper = (disk.root / "etc/munge").stat()
    os.chown(disk.upper / "etc/munge/munge.key", keeper.st_uid, keeper.st_gid)
    units = (*STARTED, CONTROLLER) if host.name == lab.hosts[0].name else STARTED
    for unit in units:
        disk.link(
            f"etc/systemd/system/multi-user.target.wants/{unit}", f"/lib/systemd/system/{unit}"
        )


def _munge_key(paths: LabPaths) -> str:
    """Return the secret that the daemons of one lab share, and no other lab."""
    return hashlib.sha512(paths.key.read_bytes()).hexdigest()
