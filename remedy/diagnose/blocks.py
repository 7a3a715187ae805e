"""What ``nvidia-smi -q``, ``ibstat`` and NCCL's RAS print: blocks of names and values, of one card or rank.

A line of such a block means something only under its heading; so they are recognised by what they hold, and
read as blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from remedy.diagnose.catalogue import CLEAR, Role
from remedy.text import is_number
from remedy.verify.onhost import ras_answer

SMI = b"==============NVSMI LOG=============="
IBSTAT = re.compile(rb"^CA '[\w.-]{1,40}'", re.MULTILINE)
_RAS = re.compile(rb'\A\s*\{\s*"nccl_version"\s*:')
_INSIDE = frozenset(" \t}+|=")  # how the last line of such a thing begins
_RAS_TEXT = re.compile(rb"^Communicators\.\.\. \(", re.MULTILINE)
SLOWEST = 20  # Gb/s of InfiniBand: four lanes of SDR or DDR, or one of a faster kind
LARGEST = 4 << 20  # bytes that are read

_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f:.]{2,12})$")
_PORT = re.compile(r"^\s*Port (\d{1,3}):$")
_CA = re.compile(r"^CA '([\w.-]{1,40})'$")
_VALUE = re.compile(r"^(?P<indent> *)(?P<name>[^:]{1,80}?) *: *(?P<value>.{0,200})$")
_FIELD = re.compile(rb"^[ \t]+[\w][^:\n]{0,80}:(?: |$)")
# What is repaired at the next reset, or never.
_RESETS = ("Reset Required", "Drain and Reset Recommended")
_REPAIRS = ("Channel Repair Pending", "TPC Repair Pending", "Unrepairable Memory")


@dataclass(frozen=True)
class BlockSign:
    """What a block shows.

    Args:
        line: its number.
        text: the card or port, and what is wrong there.
        label: the cause that it speaks for.
        weight: how much.
        details: of the card, port or rank, by their names in the catalogue.
        is_consequence: whether it says who is gone, and not why.
    """

    line: int
    text: str
    label: str
    weight: float
    details: Mapping[str, str]
    is_consequence: bool = False

    @property
    def role(self) -> Role:
        """What it counts as, beside the lines of logs."""
        if self.weight < CLEAR:
            return Role.SIGN
        return Role.CONSEQUENCE if self.is_consequence else Role.CAUSE


@dataclass
class _Port:
    """A port of an adapter, as ibstat shows it."""

    name: str
    line: int
    values: dict[str, str] = field(default_factory=dict)


def signs_of(data: bytes) -> tuple[BlockSign, ...]:
    """Return what is wrong by the blocks that the beginning of a file holds; nothing where it holds none.

    Args:
        data: the beginning of the file.
    """
    lines = data[:LARGEST].decode("utf-8", "replace").splitlines()
    signs: tuple[BlockSign, ...] = ()
    if SMI in data:
        signs += tuple(_cards(lines))
    if IBSTAT.search(data):
        signs += tuple(_ports(lines))
    if _RAS.match(data):
        signs += tuple(_ranks(data[:LARGEST].decode("utf-8", "replace")))
    return signs


def is_state(data: bytes, tail: str) -> bool:
    """Return whether a file is what a tool printed of the state of a host or a job, and no log of a run.

    Many a job prints such a thing first, and its own lines after it: these begin at the margin.

    Args:
        data: the beginning of the file.
        tail: its last lines.
    """
    has_any = b"| NVIDIA-SMI " in data or _has_blocks(data) or _RAS_TEXT.search(data)
    return bool(has_any) and tail.rstrip().rpartition("\n")[2][:1] in _INSIDE


def _has_blocks(data: bytes) -> bool:
    return SMI in data or bool(IBSTAT.search(data) or _RAS.match(data))


def fields_of(data: bytes) -> frozenset[int]:
    """Return the numbers of the lines that are fields of such blocks: alone they mean nothing.

    Args:
        data: the beginning of the file.
    """
    if not _has_blocks(data):
        return frozenset()
    lines = data[:LARGEST].split(b"\n")
    return frozenset(number for number, line in enumerate(lines, 1) if _FIELD.match(line))


def _cards(lines: list[str]) -> Iterator[BlockSign]:
    """Yield what ``nvidia-smi -q`` shows of faulty cards.

    Each value is read under the headings above it, by how far they are indented.
    """
    card = widest = ""
    headings: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if match := _GPU.match(line.rstrip()):
            card, headings = match[1], []
            continue
        if not card or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        headings = [heading for heading in headings if heading[0] < indent]
        value = _VALUE.match(line)
        if value is None:
            headings.append((indent, line.strip()))
            continue
        above = [heading for _, heading in headings]
        if above[-1:] == ["Link Width"]:
            if value["name"].strip() == "Max":
                widest = value["value"].strip()
            elif value["name"].strip() == "Current" and _is_narrower(value["value"], widest):
                text = f"GPU {card}: Link Width: {value['value'].strip()} of {widest}"
                yield BlockSign(number, text, "gpu-hardware-xid", 0.56, {"device": card})
        for label, weight in _of_card(above, value["name"].strip(), value["value"].strip()):
            text = f"GPU {card}: {', '.join((*above, value['name'].strip()))}: {value['value'].strip()}"
            yield BlockSign(number, text, label, weight, {"device": card})


def _is_narrower(current: str, widest: str) -> bool:
    """Return whether a link has fewer lanes than it can have: 4x of 16x; "N/A" says nothing."""
    lanes = [text.strip().removesuffix("x") for text in (current, widest)]
    return all(map(is_number, lanes)) and int(lanes[0]) < int(lanes[1])


def _of_card(above: list[str], name: str, value: str) -> Iterator[tuple[str, float]]:
    is_counted = is_number(value) and int(value) > 0
    if "Volatile" in above and "Uncorrectable" in name and is_counted:
        yield "gpu-hardware-xid", 0.9
    elif name == "Remapping Failure Occurred" and value == "Yes":
        yield "gpu-hardware-xid", 0.95
    elif name in _RESETS and value == "Yes":
        yield "gpu-hardware-xid", 0.85
    elif name in ("Pending", "Pending Page Blacklist", *_REPAIRS) and value == "Yes":
        yield "gpu-hardware-xid", 0.8
    elif "Fabric" in above and (name, value) == ("State", "In Progress"):
        yield "fabricmanager-not-running", 0.85
    elif "Fabric" in above and name == "Status" and value not in ("Success", "N/A"):
        yield "fabricmanager-not-running", 0.75
    elif name == "GPU Recovery Action" and value not in ("None", "N/A"):
        yield "gpu-hardware-xid", 0.85
    elif name in ("HW Thermal Slowdown", "HW Power Brake Slowdown") and value == "Active":
        # Slow, and with it every rank that waits for it; what fails is another matter.
        yield "gpu-hardware-xid", 0.56


def _ports(lines: list[str]) -> Iterator[BlockSign]:
    """Yield what ``ibstat`` shows of ports without a link, or without a subnet manager."""
    ports = list(_read_ports(lines))
    active = any(port.values.get("State") == "Active" for port in ports)
    layers = {
        port.values.get("Link layer") for port in ports if port.values.get("State") == "Active"
    }
    for port in ports:
        state, physical = port.values.get("State", ""), port.values.get("Physical state", "")
        text = f"{port.name}: State: {state}, Physical state: {physical}"
        if state == "Initializing" and physical == "LinkUp":
            # The link is up, and nobody gave the port an address: there is no subnet manager.
            yield BlockSign(port.line, text, "ib-misconfig", 0.8, {"device": port.name})
        elif state == "Down" and physical in ("Polling", "Disabled", "Sleep"):
            # Beside ports that work it may be one that nobody uses.
            yield BlockSign(
                port.line, text, "ib-link-fault", 0.5 if active else 0.85, {"device": port.name}
            )
        elif _is_at_its_slowest(port):
            text = f"{port.name}: Rate: {port.values['Rate']} Gb/s over InfiniBand"
            yield BlockSign(port.line, text, "ib-link-fault", 0.75, {"device": port.name})
    for port, fastest in _slower(ports):
        text = f"{port.name}: Rate: {port.values['Rate']}, another port of this host: {fastest}"
        yield BlockSign(port.line, text, "ib-link-fault", 0.5, {"device": port.name})
    if {"InfiniBand", "Ethernet"} <= layers:
        text = "ports of InfiniBand and of Ethernet are active on one host"
        yield BlockSign(ports[0].line, text, "ib-roce-mixed", 0.6, {"device": ports[0].name})


def _is_at_its_slowest(port: _Port) -> bool:
    """Return whether a link runs at a rate that any cable carries: adapters in use take 40 Gb/s and more."""
    rate = port.values.get("Rate", "")
    is_up = port.values.get("State") == "Active" and port.values.get("Link layer") == "InfiniBand"
    return is_up and is_number(rate) and int(rate) <= SLOWEST


def _slower(ports: list[_Port]) -> Iterator[tuple[_Port, int]]:
    """Yield ports that run at a lower rate than others of their kind of adapter, with the highest of those."""
    rates: dict[str, list[tuple[int, _Port]]] = {}
    for port in ports:
        rate, kind = port.values.get("Rate", ""), port.values.get("CA type", "")
        if port.values.get("State") == "Active" and is_number(rate):
            rates.setdefault(kind, []).append((int(rate), port))
    for alike in rates.values():
        fastest = max(rate for rate, _ in alike)
        yield from ((port, fastest) for rate, port in alike if rate < fastest)


def _read_ports(lines: list[str]) -> Iterator[_Port]:
    adapter, kind, port = "", "", None
    for number, line in enumerate(lines, 1):
        if match := _CA.match(line.strip()):
            adapter, kind, port = match[1], "", None
        elif match := _PORT.match(line):
            port = _Port(f"{adapter} port {match[1]}", number, {"CA type": kind})
            yield port
        elif port is not None and (value := _VALUE.match(line.strip())):
            port.values[value["name"].strip()] = value["value"].strip()
        elif port is None and line.strip().startswith("CA type:"):
            kind = line.partition(":")[2].strip()


def _ranks(answer: str) -> Iterator[BlockSign]:
    """Yield the ranks that NCCL's RAS misses in a job, or that are behind.

    Ranks of a job at work are an operation apart from time to time: to be behind once is no more than a hint.
    """
    for rank in ras_answer.ranks_of(answer):
        is_behind = rank.state == ras_answer.BEHIND
        says = (
            f"launched {rank.launched} operations, fewer than others" if is_behind else rank.state
        )
        where = f" (process {rank.pid} on {rank.node})" if rank.pid and rank.node else ""
        details = {"rank": str(rank.rank), "pid": rank.pid, "host": rank.node}
        known = {name: value for name, value in details.items() if value}
        text = f"NCCL's RAS: rank {rank.rank}{where}: {says}"
        yield BlockSign(1, text, "peer-died-timeout", 0.59 if is_behind else 0.82, known, True)
