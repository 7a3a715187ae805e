"""Faults that no remedy was written for: what each does on a host, how it is taken back, and what it changed.

They stand for the faults that nobody thought of. ``remedy verify`` is red under each, and its next step has to
print what was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remedy.lab.host import Host

TABLE = "nft delete table inet odd"
# A C library that refuses what leads to ports of training; compiled where the tests run.
PRELOAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
int connect(int fd, const struct sockaddr *to, socklen_t size) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (!real) real = dlsym(RTLD_NEXT, "connect");
    if (to->sa_family == AF_INET && ntohs(((const struct sockaddr_in *)to)->sin_port) > 1024) {
        errno = ETIMEDOUT;
        return -1;
    }
    return real(fd, to, size);
}
"""


@dataclass(frozen=True)
class UnknownFault:
    """A fault of the tests' own.

    Args:
        text: what it does, one line.
        do: a text for the host's shell; $IF is the cluster interface, $OWN its address, $PEER that of a peer.
        undo: what takes it back.
        thing: a regular expression for what was changed, as the next step has to print it.
    """

    text: str
    do: str
    undo: str
    thing: str

    def inject(self, host: Host) -> None:
        """Break a host."""
        host.must(_variables(host) + self.do)

    def mend(self, host: Host) -> None:
        """Take it back; what is gone already is no failure."""
        host.run(_variables(host) + self.undo)


def _variables(host: Host) -> str:
    own, peer = host.record, host.peers[0].cluster_address
    return f"IF={own.cluster_interface} OWN={own.cluster_address} PEER={peer}\n"


def _rules(*rules: str, hook: str = "input", kind: str = "filter") -> str:
    lines = "\n".join(rules)
    priority = "-300" if kind == "filter" else "-100"
    return (
        "nft -f - <<end\ntable inet odd {\nchain odd {\n"
        f"type {kind} hook {hook} priority {priority}; policy accept;\n"
        f"{lines}\n}}\n}}\nend"
    )


def _limits(*lines: str) -> tuple[str, str]:
    text = "\\n".join(f"root {line}" for line in lines)
    return (
        f"printf '{text}\\n' >/etc/security/limits.d/odd.conf",
        "rm /etc/security/limits.d/odd.conf",
    )


def _unit(command: str) -> tuple[str, str]:
    return f"systemd-run -q --unit=odd sh -c '{command}'", "systemctl stop odd; sleep 0.5"


def _bashrc(line: str) -> tuple[str, str]:
    return (
        f"cp /root/.bashrc /root/.bashrc.kept 2>/dev/null || :; echo '{line}' >/root/.bashrc",
        "rm /root/.bashrc; mv /root/.bashrc.kept /root/.bashrc",
    )


STOPS = 'while :; do pkill -STOP -f "[p]ython.* -u .*worker"; sleep 0.1; done'
SITE = "$(readlink -f /usr/lib/python3.*/sitecustomize.py)"
PYTHON = "$(readlink -f /usr/bin/python3)"

FAULTS: Mapping[str, UnknownFault] = {
    "drops-by-length": UnknownFault(
        "a rule drops packets longer than 1200 bytes",
        _rules('iifname "$IF" meta length 1200-65535 counter drop'),
        TABLE,
        r"meta length 1200-65535",
    ),
    "drops-by-ttl": UnknownFault(
        "a rule drops TCP whose TTL is 64, but ssh",
        _rules('iifname != "lo" tcp dport 1024-65535 ip ttl 64 counter drop'),
        TABLE,
        r"ip ttl 64",
    ),
    "drops-by-count": UnknownFault(
        "a rule rejects more than two connections at a time",
        _rules('iifname != "lo" tcp dport 1024-65535 tcp flags syn ct count over 2 counter reject'),
        TABLE,
        r"ct count over 2",
    ),
    "drops-by-rate": UnknownFault(
        "a rule drops more than two new connections a minute",
        _rules(
            'iifname != "lo" tcp dport 1024-65535 tcp flags syn limit rate over 2/minute counter drop'
        ),
        TABLE,
        r"limit rate over 2/minute",
    ),
    "drops-by-bytes": UnknownFault(
        "a rule drops SYN packets by bytes of their header, without a counter",
        _rules('iifname != "lo" tcp dport 1024-65535 @th,104,8 & 0x02 == 0x02 drop'),
        TABLE,
        r"@th,10\d,\d+|tcp flags",
    ),
    "redirects-to-proxy": UnknownFault(
        "what goes to ports of training is redirected to a proxy that does not run",
        _rules(
            "ip daddr $PEER tcp dport 1024-65535 counter redirect to :3128",
            hook="output",
            kind="nat",
        ),
        TABLE,
        r"redirect to :3128",
    ),
    "device-ingress-drops": UnknownFault(
        "a chain before all others drops the first peer",
        'nft "add table netdev odd; add chain netdev odd odd'
        ' { type filter hook ingress device \\"$IF\\" priority 0; };'
        ' add rule netdev odd odd ip saddr $PEER tcp dport 1024-65535 counter drop"',
        "nft delete table netdev odd",
        r"netdev odd",
    ),
    "answers-no-arp": UnknownFault(
        "the cluster interface answers no question for its hardware address",
        "sysctl -qw net.ipv4.conf.$IF.arp_ignore=8; ip neigh flush dev $IF",
        "sysctl -qw net.ipv4.conf.$IF.arp_ignore=0",
        r"arp_ignore",
    ),
    "reserves-all-ports": UnknownFault(
        "the kernel gives out no port, because all are reserved",
        "sysctl -qw net.ipv4.ip_local_reserved_ports=1024-29499,29501-65535",
        "sysctl -qw net.ipv4.ip_local_reserved_ports=",
        r"ip_local_reserved_ports",
    ),
    "stops-ranks": UnknownFault(
        "something stops every rank that starts (SIGSTOP)", *_unit(STOPS), r"pkill -STOP"
    ),
    "link-flaps": UnknownFault(
        "something takes the cluster interface down again and again",
        'systemd-run -q --unit=odd sh -c "while :; do ip link set dev $IF down; sleep 2;'
        ' ip link set dev $IF up; sleep 1; done"',
        "systemctl stop odd; ip link set dev $IF up; sleep 1",
        r"ip link set dev \S+ down",
    ),
    "python-not-executable": UnknownFault(
        "nobody may execute Python",
        f"chmod 644 {PYTHON} /opt/stub-torch/python",
        f"chmod 755 {PYTHON} /opt/stub-torch/python",
        r"/opt/stub-torch/python\S* (?:may not be executed|ended with 126).*|python: Permission denied",
    ),
    "python-gone": UnknownFault(
        "there is no Python",
        f"for p in /usr/bin/python3 {PYTHON}; do mv $p $p.gone; done",
        "for p in /usr/bin/python3*.gone; do mv $p ${p%.gone}; done",
        r"python3: not found|python3.*(?:not found|No such file)",
    ),
    "python-hangs": UnknownFault(
        "sitecustomize.py sleeps whenever Python starts",
        f"cp {SITE} /root/site.kept; echo 'import time; time.sleep(1e6)' >>{SITE}",
        f"cp /root/site.kept {SITE}",
        r"sitecustomize\.py",
    ),
    "torch-broken": UnknownFault(
        "torch cannot load one of its libraries",
        "cp /opt/stub-torch/torch/__init__.py /root/kept.py;"
        " echo 'raise ImportError(\"libcudart.so.12: cannot open\")' >>/opt/stub-torch/torch/__init__.py",
        "cp /root/kept.py /opt/stub-torch/torch/__init__.py",
        r"libcudart\.so\.12",
    ),
    "torch-hangs": UnknownFault(
        "importing torch never ends",
        "cp /opt/stub-torch/torch/__init__.py /root/kept.py; echo 'import time; time.sleep(1e6)'"
        " >>/opt/stub-torch/torch/__init__.py",
        "cp /root/kept.py /opt/stub-torch/torch/__init__.py",
        r"torch/__init__\.py.{0,4}, line",
    ),
    "library-path": UnknownFault(
        "LD_LIBRARY_PATH leads to a library that is empty",
        "mkdir -p /opt/odd && : >/opt/odd/libz.so.1 && : >/opt/odd/libexpat.so.1 &&"
        " echo LD_LIBRARY_PATH=/opt/odd >>/etc/environment",
        "rm -r /opt/odd; sed -i /LD_LIBRARY_PATH/d /etc/environment",
        r"LD_LIBRARY_PATH=/opt/odd|/opt/odd/lib",
    ),
    "preload-breaks-connect": UnknownFault(
        "/etc/ld.so.preload names a library whose connect() fails",
        "echo /opt/odd-connect.so >/etc/ld.so.preload",
        "rm -f /etc/ld.so.preload",
        r"odd-connect\.so",
    ),
    "little-memory": UnknownFault(
        "a session may have 60 MB of address space",
        *_limits("- as 60000"),
        r"limits\.d/odd\.conf|\b60000\b",
    ),
    "few-files": UnknownFault(
        "a session may have 12 files open",
        *_limits("- nofile 12"),
        r"limits\.d/odd\.conf|nofiles?\S* +12\b|open files.* 12\b|Too many open files",
    ),
    "bashrc-ends": UnknownFault(
        ".bashrc ends the session", *_bashrc("exit 0"), r"\.bashrc:\d+ exit 0"
    ),
    "bashrc-reads": UnknownFault(
        ".bashrc reads what is meant for others", *_bashrc("cat >/dev/null"), r"\.bashrc:\d+ cat"
    ),
    "bashrc-other-shell": UnknownFault(
        ".bashrc becomes another program", *_bashrc("exec sleep 3"), r"\.bashrc:\d+ exec sleep 3"
    ),
}
