"""The names that completion offers: of hosts, groups, runs, remedies, causes, faults and labs.

Commands keep the names of an inventory in a cache beside its journal; completion reads that and never runs an
inventory. Whatever is in the cache, only words that a shell takes as they are come out of here: a name such as
``$(reboot)`` would be run by whoever completes it and presses Enter.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from remedy.files import at_home, kept_mode, read_regular, write_whole

if TYPE_CHECKING:
    from remedy.inventory import Inventory

CACHE = "names.json"
USUAL = "inventory.py"
MOST_BYTES = 8 << 20
MOST_NAMES = 20_000
# The end of a journal in which runs are looked for.
TAIL = 512 << 10
PLAIN = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")
_CAUSE = re.compile(r"^  ([a-z0-9-]+):$", re.M)


def keep(inventory: Inventory) -> None:
    """Keep the names of an inventory for completion; that it cannot be done is no matter."""
    home = inventory.home
    if not home.is_dir():
        return
    names = {"hosts": list(inventory.names), "groups": list(inventory.groups)}
    known = _cache(home)
    if known.get(inventory.path.name) == names:
        return
    with suppress(OSError):
        write_whole(
            home / CACHE, json.dumps({**known, inventory.path.name: names}), mode=kept_mode(home)
        )


def hosts(words: Iterable[str]) -> list[str]:
    """Return the hosts, and the groups with an @, of the inventories in reach.

    Args:
        words: of the command line; see ``home_among``.
    """
    names: list[object] = []
    for inventory in _cache(home_among(words)).values():
        if isinstance(inventory, dict):
            names += _list(inventory.get("hosts"))
            names += [f"@{group}" for group in _list(inventory.get("groups"))]
    return plain(names)


def runs(words: Iterable[str], modes: Container[str] = ()) -> list[str]:
    """Return the last runs of the journal in reach, the newest first.

    Args:
        words: of the command line; see ``home_among``.
        modes: the commands whose runs are wanted; none for all.
    """
    try:
        with (home_among(words) / "journal.jsonl").open("rb") as journal:
            size = journal.seek(0, os.SEEK_END)
            journal.seek(max(0, size - TAIL))
            lines = journal.read(TAIL).splitlines()
    except OSError:
        return []
    records = map(_record, reversed(lines))
    ids = (run for run, mode in records if run and (not modes or mode in modes))
    return plain(dict.fromkeys(ids))


def _record(line: bytes) -> tuple[str, str]:
    """Return the run of a line of the journal, and of which command it is; "" where it has none."""
    try:
        record = json.loads(line)
        run, mode = str(record["run"]), str(record.get("mode", ""))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return "", ""
    return (run, mode) if _RUN.fullmatch(run) else ("", "")


def remedies() -> list[str]:
    """Return the names of all remedies, importing none of them."""
    from importlib.resources import files

    from remedy.installed import points

    built_in = (Path(str(file.name)).stem for file in files("remedy").joinpath("deploys").iterdir())
    third = (point.name for point in points(group="remedy.deploys"))
    return sorted(plain(name for name in {*built_in, *third} if not name.startswith("_")))


def causes() -> list[str]:
    """Return the labels of causes.yaml."""
    return plain(_CAUSE.findall(_own_text("causes.yaml")))


def facts() -> list[str]:
    """Return the facts of a host."""
    from remedy.probe.state import HostState

    return sorted(plain(HostState.model_fields))


def faults() -> list[str]:
    """Return what ``lab break`` injects."""
    from remedy.lab.faults import catalogue

    return plain(fault.name for fault in catalogue())


def labs() -> list[str]:
    """Return the labs of this machine."""
    from remedy.lab.paths import LabPaths

    try:
        return sorted(plain(folder.name for folder in LabPaths.of().folder.parent.iterdir()))
    except Exception:  # whatever is there: completion says nothing
        return []


def lab_hosts(words: Iterable[str]) -> list[str]:
    """Return the hosts of the lab of a command line, by its state file."""
    from remedy.lab.paths import LabPaths

    try:
        state = json.loads(read_regular(LabPaths.of(_value(words, "--name")).state, MOST_BYTES))
        return plain(host.get("name") for host in state["hosts"])
    except Exception:  # whatever is there: completion says nothing
        return []


def inventory_of(home: Path) -> Path | None:
    """Return the inventory that a folder of a journal is of; None where there are several, or none is known.

    Where no command on hosts was run yet it is ``inventory.py``, as ``remedy init`` calls it.
    """
    known = [home.parent / name for name in _cache(home) or (USUAL,) if Path(name).name == name]
    return known[0] if len(known) == 1 and known[0].is_file() else None


def plain(names: Iterable[object]) -> list[str]:
    """Return the names that a shell takes as they are; others are left out."""
    known = (name for name in names if isinstance(name, str) and PLAIN.fullmatch(name))
    return [name for name, _ in zip(dict.fromkeys(known), range(MOST_NAMES), strict=False)]


def home_among(words: Iterable[str]) -> Path:
    """Return the folder of the journal that a command line is about.

    It is the one of --home where no --inventory is given, the one beside the first word that is a file, or the
    one of this folder.
    """
    words = list(words)
    inventory, home = _value(words, "--inventory"), _value(words, "--home")
    if home is not None and inventory is None:
        return at_home(home)
    for word in words if inventory is None else (inventory, *words):
        path = at_home(word)
        with suppress(OSError, ValueError):
            if path.is_file() and (path.resolve().parent / ".remedy").is_dir():
                return path.resolve().parent / ".remedy"
    return Path(".remedy")


def _value(words: Iterable[str], option: str) -> str | None:
    """Return the value of an option among the words of a command line, in which bash sets = apart."""
    rest = iter([word for word in words if word != "="])
    for word in rest:
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else next(rest, None)
    return None


def _cache(home: Path) -> dict[str, object]:
    try:
        known = json.loads(read_regular(home / CACHE, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _list(value: object) -> Iterator[object]:
    yield from value if isinstance(value, list) else ()


def _own_text(name: str) -> str:
    from importlib.resources import files

    return files("remedy").joinpath(name).read_text("utf-8")
