"""Names, interfaces, routes and firewalls between two hosts, and what the surviving rank prints."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.scenario import C10D, GOOD, LOCAL, NAMED, RUN, TEE, A, B, Scenario, one, two

OPEN_MASTER = (
    "nft 'add table inet site; add chain inet site in {{ type filter hook input priority 0; policy accept; }}; "
    "add rule inet site in iifname lo accept; add rule inet site in ct state established accept; "
    "add rule inet site in tcp dport {{ 22, 29500, 29400 }} accept; add rule inet site in meta l4proto tcp "
)


def names() -> Iterator[Scenario]:
    """Names that do not resolve, or lead to loopback."""
    yield one(
        "name-env",
        "hostname-unresolvable",
        "MASTER_ADDR=gpu77 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
    )
    yield one(
        "name-torchrun",
        "hostname-unresolvable",
        "torchrun --nnodes 2 --node-rank 1 --master-addr node-7.cluster.local train.py --timeout 6",
        seconds=60,
    )
    yield one(
        "name-c10d",
        "hostname-unresolvable",
        "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint gpu77:29400 "
        "--rdzv-conf timeout=8,read_timeout=8 train.py",
        seconds=60,
    )
    table = "{table}"
    yield two(
        "loopback-gloo",
        "loopback-hostname",
        RUN + " train.py",
        setup={
            "*": "hostname {h}; sed -i s/127.0.1.1.*/127.0.1.1\\ {h}/ /etc/hosts; "
            f"printf '{table}' >> /etc/hosts"
        },
        alone={A: "loopback-hostname"},
    )
    yield two(
        "healthy-loopback",  # only rank 0 has to be reached, so rank 1's wrong name does not matter with two
        "healthy",
        RUN + " train.py",
        setup={"*": NAMED, B: "hostname {h}; sed -i '1i 127.0.1.1 {h}' /etc/hosts"},
    )
    yield two(
        "duplicate-c10d",
        "unknown",
        C10D + " --rdzv-conf timeout=20,join_timeout=20 train.py --timeout 10",
        setup={"*": "sed -i /127.0.1.1/d /etc/hosts; echo {a} node >> /etc/hosts"},
        secondary="duplicate-hostname",
        seconds=60,
    )
    yield two(
        "name-peer-c10d",
        "hostname-unresolvable",
        C10D + " --rdzv-conf timeout=20,join_timeout=20 train.py --timeout 10",
        setup={"*": "hostname {h}; sed -i /127.0.1.1/d /etc/hosts; echo {a} {h} >> /etc/hosts"},
        seconds=60,
        alone={B: "hostname-unresolvable"},
    )
    yield two(
        "name-own",
        "hostname-unresolvable",
        RUN + " train.py",
        setup={"*": "hostname {h}; sed -i /127.0.1.1/d /etc/hosts"},
        secondary="loopback-hostname",
    )


def network() -> Iterator[Scenario]:
    """Interfaces, routes and firewalls."""
    yield two(
        "interface-missing",
        "wrong-interface",
        RUN + " train.py",
        setup=GOOD,
        only={B: "GLOO_SOCKET_IFNAME=eno7 " + RUN + " train.py"},
        alone={B: "wrong-interface"},
        seconds=60,
    )
    yield one("interface-caret", "wrong-interface", "GLOO_SOCKET_IFNAME=^lo " + LOCAL + "train.py")
    yield one("interface-tee", "wrong-interface", "GLOO_SOCKET_IFNAME=bond0 " + TEE + "train.py")
    yield two(
        "interface-docker",
        "wrong-interface",
        "GLOO_SOCKET_IFNAME=docker0 " + RUN + " train.py",
        setup=GOOD,
        secondary="network-unreachable;peer-died-timeout;firewall-ports;duplicate-hostname",
    )
    yield one(
        "unreachable-master",
        "network-unreachable",
        "torchrun --nnodes 2 --node-rank 1 --master-addr 198.51.100.9 --master-port 29500 train.py",
        setup={"*": "ip route del default 2>/dev/null; true"},
        seconds=60,
    )
    yield one(
        "unreachable-env",
        "network-unreachable",
        "MASTER_ADDR=203.0.113.4 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
        setup={"*": "ip route del default 2>/dev/null; true"},
    )
    yield one(
        "ipv6-off",
        "ipv6-issue",
        "MASTER_ADDR=fd00:7::1 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 python train.py --timeout 6",
        setup={"*": "sysctl -qw net.ipv6.conf.all.disable_ipv6=1"},
        secondary="network-unreachable",
    )
    fast = " train.py --timeout 12"
    for wall in ("nftables", "ufw", "firewalld", "iptables", "iptables-legacy"):
        yield two(
            f"firewall-{wall}",
            "firewall-ports",
            RUN + " --rdzv-conf timeout=20" + fast,
            setup=GOOD,
            fault={A: (f"firewall-{wall}",)},
            secondary="rank-mismatch;network-unreachable",
            seconds=90,
        )
    for kind, verb in (
        ("drop", "drop"),
        ("reject", "reject with icmpx admin-prohibited"),
        ("reset", "reject with tcp reset"),
    ):
        yield two(
            f"firewall-ephemeral-{kind}",
            "firewall-ports",
            RUN + fast,
            setup={"*": NAMED, A: OPEN_MASTER + verb + "'"},
            secondary="peer-died-timeout;network-unreachable;unknown;rank-mismatch",
            alone={B: "firewall-ports"} if kind == "reject" else {},
            seconds=90,
        )
    yield two(
        "firewall-ephemeral-both",
        "firewall-ports",
        RUN + " --tee 3" + fast,
        setup={"*": NAMED + "; " + OPEN_MASTER + "reject with icmpx admin-prohibited'"},
        secondary="peer-died-timeout;network-unreachable",
        seconds=90,
    )


def peers() -> Iterator[Scenario]:
    """A rank that fails, and what the other one prints."""
    yield two(
        "peer-raise",
        "application-error",
        RUN + " --tee 3 train.py --steps 40 --fail raise --rank 1",
        setup=GOOD,
        alone={A: "peer-died-timeout", B: "application-error"},
    )
    yield two(
        "peer-assert",
        "application-error",
        RUN + " train.py --steps 40 --fail assert --rank 0",
        setup=GOOD,
        alone={B: "peer-died-timeout"},
    )
    yield two(
        "peer-kill",
        "unknown",
        RUN + " train.py --steps 40 --fail kill --rank 1",
        setup=GOOD,
        secondary="host-oom;peer-died-timeout",
        alone={A: "peer-died-timeout"},
    )
    yield two(
        "peer-stall",
        "peer-died-timeout",
        RUN + " train.py --steps 40 --fail stall --rank 1",
        setup=GOOD,
        secondary="application-error;unknown",
        alone={A: "peer-died-timeout"},
        seconds=60,
    )
    yield two(
        "peer-disk",
        "disk-full",
        RUN + " train.py --save /ckpt",
        setup={"*": NAMED + "; mkdir -p /ckpt", B: "mount -t tmpfs -o size=2m none /ckpt"},
    )
    yield two(
        "peer-shm",
        "shm-too-small",
        RUN + " --tee 3 train.py --workers 2",
        setup={"*": NAMED, B: "mount -o remount,size=3m /dev/shm"},
    )
