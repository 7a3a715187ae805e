"""Nodes of Slurm: slurm.conf (``slurm_conf``), and what ``scontrol show nodes`` and ``sinfo`` print."""

from __future__ import annotations

import re
from pathlib import Path

from remedy.errors import UsageError
from remedy.inventory.elsewhere.listing import Collector
from remedy.inventory.elsewhere.slurm_conf import Conf
from remedy.inventory.elsewhere.slurm_nodes import add_nodes
from remedy.inventory.elsewhere.source import shown_source

# `scontrol show nodes` begins each node so; a slurm.conf has no CPUAlloc.
_SHOWN_NODE = re.compile(r"^NodeName=\S+ .*?(?:CoresPerSocket=\d+ +\n? *CPUAlloc=)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|\s)(NodeName|NodeAddr|NodeHostName|State)=(\S+)")
# Columns of sinfo with names of hosts: of %N (and %n), and the address of %o.
_NAMES, _ADDRESS, _STATE = ("NODELIST", "HOSTNAMES"), "NODE_ADDR", "STATE"


def read_slurm(collector: Collector, text: str, path: Path | None) -> None:
    """Read slurm.conf, or what scontrol or sinfo printed; whichever it is shows in the text."""
    if text.lstrip().startswith("{"):
        raise UsageError(
            f"{shown_source(path)}: JSON; of Slurm text is read",
            next_step="Print the nodes without --json: scontrol show nodes -o",
        )
    lines = text.split("\n")
    header = next((n for n, line in enumerate(lines[:5]) if _is_header(line.split())), None)
    if _SHOWN_NODE.search(text):
        _read_shown(collector, text)
    elif header is not None:
        _read_table(collector, lines[header].split(), lines[header + 1 :], header + 2)
    else:
        Conf(collector, path).read(text)


def _read_shown(collector: Collector, text: str) -> None:
    """Read `scontrol show nodes`, a node a line (-o) or a paragraph."""
    number = 1
    for paragraph in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        # What an administrator wrote (Reason, Comment, Extra) comes behind these: the first of each counts.
        values: dict[str, str] = {}
        for key, value in _FIELD.findall(paragraph):
            values.setdefault(key.lower(), value)
        if "nodename" in values:
            add_nodes(collector, f"line {number}", values["nodename"], values)
        number += paragraph.count("\n")


def _is_header(words: list[str]) -> bool:
    return sum(word in words for word in _NAMES) == 1 and all(w.upper() == w for w in words)


def _read_table(collector: Collector, header: list[str], lines: list[str], first: int) -> None:
    """Read what sinfo prints below its header; of its columns only the reason may hold blanks."""
    for number, line in enumerate(lines, first):
        words = line.split()
        if _is_header(words):
            header = words  # of the next cluster (sinfo -M), or printed again (sinfo -i)
            continue
        # A partition without nodes has no word there. A line that begins with one may lack a reason at its end.
        if len(words) < len(header) and (header[0] not in _NAMES or not line[:1].strip()):
            continue

        def cell(*names: str, words: list[str] = words, header: list[str] = header) -> str:
            column = next((n for n, word in enumerate(header) if word in names), None)
            if column is None or column >= len(words):
                return ""
            # A reason has blanks: what is behind it is counted from the end.
            return words[column - len(header) if "REASON" in header[:column] else column]

        state = cell(_STATE)
        values = {
            "nodeaddr": cell(_ADDRESS),
            "state": "POWERED_DOWN" if state[-1:] == "~" else state,
        }
        if names := cell(*_NAMES):
            add_nodes(collector, f"line {number}", names, values)
