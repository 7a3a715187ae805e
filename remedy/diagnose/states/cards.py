"""Faulty cards in what ``nvidia-smi -q`` prints, as text or, with ``-x``, as XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from remedy.diagnose.states.signs import BlockSign, Row
from remedy.text import is_number

_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f:.]{2,12})$")
_VALUE = re.compile(r"^(?P<indent> *)(?P<name>[^:]{1,80}?) *: *(?P<value>.{0,200})$")
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[a-z]\w{0,60})(?: id=\"(?P<id>[\w:.]{1,20})\")?>(?P<value>[^<]{0,80})"
)
# What says by itself that a card is faulty: the value, and how much it says.
_BAD = {
    "Remapping Failure Occurred": ("Yes", 0.95),
    **dict.fromkeys(("Reset Required", "Drain and Reset Recommended"), ("Yes", 0.85)),
    # What is repaired at the next reset, or never.
    **dict.fromkeys(("Pending", "Pending Page Blacklist", "Unrepairable Memory"), ("Yes", 0.8)),
    **dict.fromkeys(("Channel Repair Pending", "TPC Repair Pending"), ("Yes", 0.8)),
    **dict.fromkeys(("Route Unhealthy", "Route Recovery in progress"), ("True", 0.75)),
    "Access Timeout Recovery": ("True", 0.75),
    # Slow, and with it every rank that waits for it; what fails is another matter.
    **dict.fromkeys(("HW Thermal Slowdown", "HW Power Brake Slowdown"), ("Active", 0.56)),
}
# What the XML calls otherwise than the text.
_NAMES = {
    "Remapped Row Failure": "Remapping Failure Occurred",
    "Remapped Row Pending": "Pending",
    "Current Link Width": "Current",
    "Max Link Width": "Max",
    "Link Widths": "Link Width",
    "Gpu Recovery Action": "GPU Recovery Action",
    "Drain And Reset Recommended": "Drain and Reset Recommended",
    "Route Recovery In Progress": "Route Recovery in progress",
    "Tpc Repair Pending": "TPC Repair Pending",
}
_REASON = re.compile(r"^Clocks (?:Event|Throttle) Reason Hw (Thermal|Power Brake) Slowdown$")


def cards(rows: Sequence[Row]) -> Iterator[BlockSign]:
    """Yield what the text shows of faulty cards.

    Each value is read under the headings above it, by how far they are indented.

    Args:
        rows: lines that may hold such a text.
    """
    card = _Card("")
    headings: list[tuple[int, str]] = []
    for number, line in rows:
        if match := _GPU.match(line.rstrip()):
            card, headings = _Card(match[1]), []
            continue
        if not card.name or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        headings = [heading for heading in headings if heading[0] < indent]
        value = _VALUE.match(line)
        if value is None:
            headings.append((indent, line.strip()))
            continue
        above = [heading for _, heading in headings]
        yield from card.signs(number, above, value["name"].strip(), value["value"].strip())


def cards_of_xml(rows: Sequence[Row]) -> Iterator[BlockSign]:
    """Yield what the XML shows of faulty cards: tags are read one by one, and nothing in it is expanded.

    Args:
        rows: lines that may hold such a text.
    """
    card = _Card("")
    above: list[str] = []
    for number, line in rows:
        for tag in _TAG.finditer(line):
            name = tag["name"].replace("_", " ").title()
            name = _REASON.sub(r"HW \1 Slowdown", _NAMES.get(name, name))
            if tag["end"]:
                del above[-1:]
                continue
            if tag["id"] and tag["name"] == "gpu":
                card, above = _Card(tag["id"]), []
            elif card.name and tag["value"].strip():
                yield from card.signs(number, above, name, tag["value"].strip())
            above.append(name)


class _Card:
    """One card, as far as its values were read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.widest = ""

    def signs(
        self, number: int, above: Sequence[str], name: str, value: str
    ) -> Iterator[BlockSign]:
        """Yield what one value shows.

        Args:
            number: of its line.
            above: the headings it stands under.
            name: of the value.
            value: as it is printed.
        """
        details = {"device": self.name}
        if above[-1:] == ["Link Width"]:
            if name == "Max":
                self.widest = value
            elif name == "Current" and _is_narrower(value, self.widest):
                text = f"GPU {self.name}: Link Width: {value} of {self.widest}"
                yield BlockSign(number, text, "gpu-hardware-xid", 0.56, details)
        for label, weight in _of_card(above, name, value):
            text = f"GPU {self.name}: {', '.join((*above, name))}: {value}"
            yield BlockSign(number, text, label, weight, details)


def _is_narrower(current: str, widest: str) -> bool:
    """Return whether a link has fewer lanes than it can have: 4x of 16x; "N/A" says nothing."""
    lanes = [text.strip().removesuffix("x") for text in (current, widest)]
    return all(map(is_number, lanes)) and int(lanes[0]) < int(lanes[1])


def _of_card(above: Sequence[str], name: str, value: str) -> Iterator[tuple[str, float]]:
    if "Volatile" in above and "Uncorrectable" in name and is_number(value) and int(value) > 0:
        yield "gpu-hardware-xid", 0.9
    elif name in _BAD and value == _BAD[name][0]:
        yield "gpu-hardware-xid", _BAD[name][1]
    elif "Fabric" in above and (name, value) == ("State", "In Progress"):
        yield "fabricmanager-not-running", 0.85
    elif "Fabric" in above and name == "Status" and value not in ("Success", "N/A"):
        yield "fabricmanager-not-running", 0.75
    elif name == "GPU Recovery Action" and value not in ("None", "N/A"):
        yield "gpu-hardware-xid", 0.85
