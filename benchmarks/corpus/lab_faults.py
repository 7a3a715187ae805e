"""Each fault of ``remedy lab break``, on the second of two hosts that work."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.scenario import GOOD, RUN, B, Scenario, two
from remedy.lab.faults import catalogue

# What a fault does to a run of torch with gloo. All others leave it as it is (they wait for NCCL, for an NPU or
# for the next boot), and their logs have to be told as healthy. So do firewalls on the second
# of two hosts: with gloo it calls, and is not called.
OF_FAULT = {
    "wrong-socket-ifname": ("wrong-interface", ""),
    "own-name-ipv6-first": ("ipv6-issue", ""),
    "own-name-ipv6-loopback": ("ipv6-issue", "loopback-hostname"),
}
# Faults without a log, and why.
WITHOUT_A_LOG = {
    "docker-small-shm": "its words are those of a small /dev/shm, which the logs shm-* hold",
    "old-environment-of-slurmd": "only what slurmd starts has it, and that is no slurmd",
    "loopback-long-name": "its words are those of lab-loopback-name",
    "wrong-device-of-ucx-and-hccl": "gloo reads neither",
    "wrong-ifname-of-containers": "only containers, tasks of Slurm and who loads the module have it",
    "wrong-ifname-of-services": "only services of systemd have it",
    "wrong-ifname-of-sessions": "its words are those of lab-wrong-socket-ifname",
    "node-lost": "the other host only waits, as in paddle-one-of-two; that one is off",
    "node-replaced": "the fresh disk has no program that could print anything",
    "stale-launch-variables": "all ranks wait, and no launcher prints a word",
    "wrong-mpi-interface": "its words are those of mpi-interface.log",
    "little-cpu-time": "a job runs as before for a minute; then the shell says CPU time limit exceeded",
    "shm-for-root-only": "the jobs are root's, who may write there",
    "default-ifname-of-logins": "its words are those of lab-wrong-socket-ifname",
    "firewall-dormant": "a job runs as before; no packet passes the table",
    "little-memory-of-logins": "its words are those of little memory, which other logs hold",
    "preloaded-library": "what the library does to a job is its own affair",
    "unconfirmed-change": "a job runs as before; it is remedy that must wait",
}
WITHOUT_A_LOG |= dict.fromkeys(
    ("scheduled-change", "scheduled-reboot"),
    "a job runs as before; it is a later time at which something is changed",
)
# Of the way by ssh: a job runs as before, and prints nothing of it.
WITHOUT_A_LOG |= dict.fromkeys(
    (
        *(
            "cut-off",
            "firewall-firewalld-panic",
            "login-sleeps",
            "password-sleeps",
            "session-sleeps",
            "sshd-frozen",
            "sudo-requires-tty",
            "sudo-sleeps",
        ),
        *("script-endless", "script-floods", "script-frozen"),
        *("sshd-other-port", "sshd-other-users", "sshd-without-keys"),
        *("shell-chatters", "shell-floods", "shell-refuses", "shell-sleeps"),
    ),
    "a job runs as before; it is the way by ssh that is stuck",
)
WITHOUT_A_LOG |= dict.fromkeys(
    (
        *("boots-into-nftables", "boots-into-iptables", "boots-into-ufw", "boots-into-firewalld"),
        *("boots-with-other-ports", "boots-without-a-peer", "boots-without-ssh"),
        *("boots-with-another-name", "boots-into-a-script"),
        *("boots-into-rescue", "boots-with-ssh-masked", "boots-into-a-crontab"),
        *("boots-into-docker", "boots-into-nothing", "boots-with-rescue-line"),
        *("boots-with-small-packets", "boots-without-a-disk", "boots-without-services"),
        *("sshd-broken", "sshd-by-hand", "sshd-not-to-be-run"),
    ),
    "a job runs as before; it is the next boot that is wrong",
)
WITHOUT_A_LOG |= dict.fromkeys(
    (
        *("route-unreachable", "route-elsewhere", "route-gone", "rule-prohibits", "ipsec-blocks"),
        *("rule-for-some-ports", "neighbour-wrong", "interface-without-arp", "queue-blackhole"),
        *("filter-redirects", "neighbours-unasked", "prefix-too-long"),
        *("own-address-gone", "interface-in-bridge", "route-in-parts", "marked-and-lost"),
        *("queue-short", "small-buffers", "route-by-a-dead-router", "route-with-small-window"),
        *("rule-for-some-users", "loopback-down", "loopback-lossy"),
        *("firewall-by-mark", "firewall-loopback", "firewall-forward", "firewall-redirects-many"),
        *("firewall-arp", "firewall-ingress", "firewall-notrack", "firewall-raw"),
        *("firewall-firewalld-direct", "firewall-firewalld-outgoing", "firewall-iptables-outgoing"),
        *("firewall-nftables-outgoing", "firewall-ufw-outgoing"),
        *("firewall-firewalld-lockdown", "firewall-firewalld-rich", "firewall-ipset"),
        *("firewall-ip6tables", "firewall-nft-ip6", "route-ipv6-unreachable", "unit-denies-peers"),
    ),
    "its words are those of a firewall that drops or rejects, which the logs lab-firewall-* hold",
)
WITHOUT_A_LOG |= dict.fromkeys(
    ("firewall-random", "firewall-rate", "firewall-ufw-limit"),
    "whether a job notices is a matter of chance, and of how many connections it makes",
)
SESSION = "set -a; . /etc/environment; set +a; "  # as a login by ssh has it


def lab_faults() -> Iterator[Scenario]:
    """Two hosts that work, and each fault of ``remedy lab break`` on the second."""
    for one_fault in catalogue():
        if one_fault.name in WITHOUT_A_LOG:
            continue
        label, secondary = next(
            (told for name, told in OF_FAULT.items() if one_fault.name.startswith(name)),
            ("healthy", ""),
        )
        yield two(
            f"lab-{one_fault.name}",
            label,
            SESSION + RUN + " --rdzv-conf timeout=20 train.py --timeout 12",
            setup=GOOD,
            fault={B: (one_fault.name,)},
            secondary=secondary,
            seconds=60,
        )
