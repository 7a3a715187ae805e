"""The eighth part, launchers over ssh: pdsh, clush and ansible, each with torchrun; and TorchX on one host.

REMEDY_LAB_VENV names an environment with clustershell, ansible-core and torchx by ``pip install``; ``debs``
below it holds what ``apt-get download pdsh`` brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.corpus.newcomers import GROUP, KILLED, LIMIT, PEERS, READ_ONLY, STALLED
from benchmarks.corpus.others import SMALL
from benchmarks.corpus.scenario import NAMED, A, B, Scenario
from benchmarks.corpus.servers import CUT, PREFIX

# The hosts let each other in without a key; who may not is told by the fault.
OPEN = (
    "passwd -qd root; printf 'PermitRootLogin yes\\nPasswordAuthentication yes\\nPermitEmptyPasswords yes\\n' "
    "> /etc/ssh/sshd_config.d/10-lab.conf; systemctl reload ssh"
)
JOB = (
    "printf 'export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore\\ncd /root\\n{{lead}}\\n"
    "torchrun --nnodes 2 --nproc-per-node 1 "
    '--node-rank {i} --master-addr {m} --master-port 29551 --rdzv-conf timeout=20 train.py "$@"\\n\' > job.sh'
)
SETUP = f"{NAMED}; {OPEN}; {JOB}"
PDSH = (
    f"dpkg --unpack {PREFIX}/debs/pdsh*.deb >/dev/null 2>&1; "
    "export PDSH_SSH_ARGS_APPEND='-o StrictHostKeyChecking=no'; "
    'pdsh -R ssh -w HOSTS "PATH=$PATH sh job.sh WORDS"'
)
CLUSH = "clush -S -o '-o StrictHostKeyChecking=no' -w HOSTS \"PATH=$PATH sh job.sh WORDS\""
ANSIBLE = (
    "export ANSIBLE_SSH_ARGS='-o StrictHostKeyChecking=no'; "
    "ansible all -i HOSTS -e ansible_python_interpreter=$(which python) "
    '-m shell -a "PATH=$PATH sh job.sh WORDS"'
)
STRANGE = (  # another key than the second host's
    "mkdir -p .ssh; ssh-keygen -q -t ed25519 -N '' -f other; "
    "echo gpu02 $(cut -d' ' -f1,2 other.pub) > .ssh/known_hosts"
)
TORCHX = "torchx run -s local_cwd --wait --log dist.ddp -j 1x2 --script train.py"


def remote() -> Iterator[Scenario]:
    """Every launcher."""
    yield from over_ssh("pdsh", PDSH, "gpu0[1-2]", ",gpu77")
    yield from over_ssh("clush", CLUSH, "gpu0[1-2]", ",gpu77")
    yield from over_ssh("ansible", ANSIBLE, "gpu01,gpu02,", "gpu77,")
    yield from torchx()


def over_ssh(program: str, launch: str, hosts: str, more_hosts: str) -> Iterator[Scenario]:
    """What a launcher prints that logs in to both hosts, run on the first of them."""

    def run(name: str, label: str, words: str = "", change: str = "true", **more: Any) -> Scenario:
        command = more.pop("start", launch).replace("HOSTS", more.pop("where", hosts))
        command = command.replace(" WORDS", f" {words}" if words else "")
        setup = {"*": SETUP.replace("{{lead}}", more.pop("before", ""))}
        setup |= {B: change, **more.pop("setup", {})}
        needs = "ansible" if program == "ansible" else "ClusterShell"
        settings = {"hosts": (A, B), "only": {B: "sleep 3"}, "seconds": 60, **more}
        return Scenario(f"{program}-{name}", label, command, setup=setup, needs=needs, **settings)

    yield run("good", "healthy")
    yield run("raise", "application-error", "--fail raise --rank 1")
    yield run("kill", "unknown", "--fail kill --rank 1", secondary=KILLED)
    yield run("stall", "peer-died-timeout", "--fail stall --rank 1", secondary=STALLED)
    yield run(
        "no-name",
        "hostname-unresolvable",
        where=hosts + more_hosts,
        secondary="ssh-launch-failure",
    )
    yield run(
        "host-key",
        "ssh-launch-failure",
        setup={A: STRANGE},
        start=launch.replace("Checking=no", "Checking=accept-new"),
    )
    yield run(
        "password",
        "ssh-launch-failure",
        change="passwd -l root >/dev/null; rm /etc/ssh/sshd_config.d/10-lab.conf; systemctl reload ssh",
    )
    yield run(
        "refused",
        "ssh-launch-failure",
        change="systemctl stop ssh.socket ssh 2>/dev/null; true",
        secondary="firewall-ports;peer-died-timeout",
    )
    yield run(
        "disk",
        "disk-full",
        "--save /ckpt",
        f"mkdir /ckpt; {SMALL.replace('2m', '4k')}",
        setup={A: "mkdir -p /ckpt"},
    )
    yield run("read-only", "storage-fault", "--save /ckpt", READ_ONLY, setup={A: "mkdir -p /ckpt"})
    yield run("firewall", "firewall-ports", fault={A: ("firewall-nftables",)}, secondary=PEERS)
    yield run(
        "memory",
        "unknown",
        change=LIMIT.replace("2G", "150M"),
        before=f"[ ! -d {GROUP} ] || echo $$ > {GROUP}/cgroup.procs",
        secondary=KILLED,
    )
    yield run(
        "environment",
        "env-not-propagated",
        start=launch.replace("PATH=$PATH ", ""),
        secondary="application-error;multi-python",
    )
    yield run(
        "link-down",
        "network-unreachable",
        "--steps 200 --pause 0.1",
        only={B: CUT.replace("SECONDS", "12") + "sleep 40"},
        secondary="peer-died-timeout;unknown;ssh-launch-failure",
    )


def torchx() -> Iterator[Scenario]:
    """TorchX, which follows the logs of both ranks."""

    def one(name: str, label: str, words: str = "", lead: str = "", **more: Any) -> Scenario:
        command = lead + TORCHX + (f" -- {words}" if words else "")
        settings = {"hosts": (A,), "setup": {"*": NAMED}, "seconds": 60, **more}
        return Scenario(f"torchx-{name}", label, command, needs="torchx", **settings)

    yield one("good", "healthy")
    yield one("raise", "application-error", "--fail raise --rank 1")
    yield one("kill", "unknown", "--fail kill --rank 1", secondary=KILLED)
    yield one("library", "missing-library", "--fail library --rank 1")
    yield one("interface", "wrong-interface", lead="GLOO_SOCKET_IFNAME=eth7 ")
    yield one(
        "disk", "disk-full", "--save /ckpt", setup={"*": f"{NAMED}; {SMALL.replace('2m', '4k')}"}
    )
    yield one("data", "storage-fault", "--fail data", secondary="application-error")
    yield one("usage", "application-error", "--learning-rate 1")
    yield one("stall", "peer-died-timeout", "--fail stall --rank 1", secondary=STALLED)
