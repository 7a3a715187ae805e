"""What to look at by hand: a command with what the lines of the log name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from remedy.diagnose.catalogue import fix_of
from remedy.diagnose.course.behind import WAITING
from remedy.diagnose.diagnosis import Diagnosis, Quote
from remedy.diagnose.judgement.hangs import PEER
from remedy.diagnose.scanner.gloo_ports import swapped
from remedy.text import is_number

# By cause: commands that read and change nothing, the one that names most first. In braces: details of a line.
_LOOKS: dict[str, tuple[str, ...]] = {
    "firewall-ports": ("nc -zv {address} {port}", "nc -zv {host} {port}"),
    "network-unreachable": ("ip route get {address}",),
    "wrong-interface": ("ip -br address show {interface}", "ip route get {address}"),
    "mpi-nic-mismatch": ("ip -br address show {interface}", "ip route get {address}"),
    "loopback-hostname": (
        "getent ahosts {peer}",
        "getent ahosts {host}",
        'getent hosts "$(hostname)"; grep -n -F {address} /etc/hosts',
    ),
    "hostname-unresolvable": ("getent hosts {peer}", "getent hosts {host}"),
    "master-port-in-use": ("ss -ltnp 'sport = :{port}'",),
    "stale-process": ("ps -o pid,user,etime,args -p {pid}",),
    "disk-full": ("quota -s; df -h {quota}", "df -h {path}; df -i {path}"),
    "storage-fault": ("findmnt -T {path}; ls -ld {path}",),
    "env-not-propagated": ("command -v {library}", "ls -l {path}"),
    "missing-library": ("ldconfig -p | grep -F {library}",),
    "ssh-launch-failure": ("ssh -o BatchMode=yes {host} true",),
    "ipv6-issue": ("ip -6 route get {address}",),
    "ib-misconfig": ("ibv_devinfo -d {device}",),
    "ib-link-fault": ("ping -c 3 {address}", "ip -s link show {interface}"),
    "gpu-hardware-xid": ("nvidia-smi -q -i {bus}", "dmesg | grep -i xid"),
    "p2p-acs-iommu": ("nvidia-smi topo -p2p r; lspci -vvv | grep -i acsctl",),
    "ib-roce-mixed": ("ibv_devinfo -d {device}",),
    "gdr-peermem": ("lsmod | grep peermem; ibv_devinfo -d {device}", "lsmod | grep peermem"),
    "memlock-limit": ("ulimit -l",),
    "nofile-limit": ("ulimit -n",),
    "host-oom": ("dmesg -T | grep -iE 'out of memory|oom-kill|killed process'",),
    "shm-too-small": ("df -h /dev/shm",),
    "stale-shm": ("ls -l /dev/shm; ipcs -m",),
}
# What a line names beside what its entry takes out of it, by what the answer is about.
_ADDRESS = re.compile(
    r"(?<![\d.])(?P<address>(?:\d{1,3}\.){3}\d{1,3})(?:(?:\]?:|<|, )(?P<port>\d{2,5})\b)?(?![\d.]*\d)"
)
_OF_STORAGE = frozenset(("disk-full", "storage-fault"))
_IN_TEXT: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (
        frozenset(
            (
                *("firewall-ports", "network-unreachable", "peer-died-timeout", "wrong-interface"),
                *("mpi-nic-mismatch", "ib-link-fault", "ib-misconfig", "loopback-hostname"),
            )
        ),
        _ADDRESS,
    ),
    (
        frozenset(
            ("ib-link-fault", "ib-misconfig", "ib-roce-mixed", "gdr-peermem", "memlock-limit")
        ),
        re.compile(r"\b(?P<device>(?:mlx\d|bnxt_re|irdma|efa|rocep|ibp|hfi\d|cxi)_?\w{0,20}\d)\b"),
    ),
    (
        frozenset(("gpu-hardware-xid", "duplicate-gpu", "p2p-acs-iommu")),
        re.compile(r"\b(?P<bus>(?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)\b"),
    ),
    (
        frozenset(("storage-fault", "disk-full")),
        re.compile(r"['\"` ](?P<path>/[\w./-]{2,200})"),
    ),
    (
        frozenset(("stale-process", "host-oom", "master-port-in-use")),
        re.compile(r"\b(?:[Pp]rocess|[Pp][Ii][Dd])[ =:]{1,2}(?P<pid>\d{2,9})\b"),
    ),
)
SSH = "ssh-launch-failure"
_DETAIL = re.compile(r"\{(\w+)\}")
_PLAIN = re.compile(r"[\w./:%@+-]{1,300}")
NAMED = (
    "on",
    "host",
    "rank",
    "local_rank",
    "address",
    "port",
    "interface",
    "device",
    "path",
    "bus",
    "library",
    "module",
    "pid",
)


def fix(diagnosis: Diagnosis) -> str:
    """Return what to do about the first failure, "" where that is what its cause says.

    Args:
        diagnosis: of the logs.
    """
    return "" if diagnosis.lead is None else fix_of(diagnosis.lead.symptom)


def look(diagnosis: Diagnosis) -> str | None:
    """Return a command that shows on a host what the lines are about; None where they name nothing.

    Args:
        diagnosis: of the logs.
    """
    return next((command for command, _ in _looks(diagnosis)), None)


def where_to_look(diagnosis: Diagnosis) -> str:
    """Return where that command is typed: "on gpu03", "where rank 3 runs"; "" where the line does not say it.

    Args:
        diagnosis: of the logs.
    """
    quote = next((quote for _, quote in _looks(diagnosis)), None)
    # Who cannot be reached by ssh is asked from where ssh was typed.
    if quote is None or diagnosis.label == SSH or _witness(quote, diagnosis.label):
        return ""
    if quote.host and _PLAIN.fullmatch(quote.host):
        return f"on {quote.host}"
    return "" if quote.rank is None else f"where rank {quote.rank} runs"


def _looks(diagnosis: Diagnosis) -> Iterator[tuple[str, Quote]]:
    """Yield the commands that lines fill, that one first which names most, each with its line."""
    lines = evidence(diagnosis)
    # The host of the first failure before others.
    lines = tuple(sorted(lines, key=lambda quote: quote.file != lines[0].file))
    for template in _LOOKS.get(diagnosis.label, ()):
        for quote in lines:
            if (command := _filled(template, _details(quote, diagnosis.label))) is not None:
                yield command, quote


def _witness(quote: Quote, label: str) -> bool:
    # Who waits in a collective is not who is awaited: a note names that rank. Nor is who lost a peer that peer.
    return label == PEER or quote.symptom in WAITING


def named(diagnosis: Diagnosis) -> str:
    """Return what the lines that speak for the cause name: "address 10.0.0.9, port 41235, rank 3"."""
    values: dict[str, str] = {}
    quotes = evidence(diagnosis)
    for quote in quotes:
        # What another log names is not of this host.
        if quote.file == quotes[0].file:
            for name, value in _details(quote, diagnosis.label).items():
                values.setdefault(name, value)
    if printed := _as_gloo_prints(values.get("port", ""), quotes):
        values["port"] += f" (gloo prints {printed})"
    return ", ".join(f"{name.replace('_', ' ')} {values[name]}" for name in NAMED if name in values)


def _as_gloo_prints(port: str, quotes: Sequence[Quote]) -> str:
    """Return the number that stands in the lines for a port whose bytes gloo swaps; "" where it is the port."""
    if not is_number(port) or any(port in quote.text for quote in quotes):
        return ""
    printed = str(swapped(int(port)))
    return printed if any(printed in quote.text for quote in quotes) else ""


def evidence(diagnosis: Diagnosis) -> tuple[Quote, ...]:
    """Return the lines that speak for the cause, the first failure first."""
    agreeing = (c.evidence for c in diagnosis.candidates if c.label == diagnosis.label)
    lead = () if diagnosis.lead is None else (diagnosis.lead,)
    return (*lead, *next(agreeing, ()))


def _details(quote: Quote, label: str) -> Mapping[str, str]:
    known = {name: value for name, value in quote.details.items() if _PLAIN.fullmatch(value)}
    known.setdefault("library", quote.details.get("name", ""))
    if quote.rank is not None and not _witness(quote, label):
        known.setdefault("rank", str(quote.rank))
    if quote.host and label != SSH and not _witness(quote, label):
        known.setdefault("on", quote.host)
    for labels, pattern in _IN_TEXT:
        if label in labels and (match := pattern.search(quote.text)):
            # A port belongs to the address beside it.
            taken = {name: value for name, value in match.groupdict().items() if value}
            if taken.keys().isdisjoint(known.keys() - {"port"}):
                known = {**taken, **known}
    if label in _OF_STORAGE and known.get("path", "") not in quote.text:
        del known["path"]  # it is that of the code which wrote
    if "quota" in quote.text.lower():
        known["quota"] = known.get("path", "")
    return {name: value for name, value in known.items() if value}


def _filled(template: str, details: Mapping[str, str]) -> str | None:
    names: Iterable[str] = _DETAIL.findall(template)
    if any(name not in details for name in names):
        return None
    return _DETAIL.sub(lambda match: shlex.quote(details[match[1]]), template)
