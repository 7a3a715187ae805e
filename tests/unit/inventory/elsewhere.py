"""Reading hosts of a different program from a text, as ``remedy init --from`` does."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import pytest

from remedy.inventory.elsewhere import Listing, read_hosts
from remedy.report.starter import render_inventory
from remedy.text import fold
from remedy.transport.reader import load_inventory


def listing_of(tmp_path: Path, kind: str, text: str, name: str = "theirs") -> Listing:
    (tmp_path / name).write_text(text)
    return read_hosts(kind, str(tmp_path / name))


def names_of(listing: Listing) -> str:
    return fold(host.name for host in listing.hosts)


def data_of(listing: Listing) -> dict[str, dict[str, object]]:
    return {host.name: dict(host.data) for host in listing.hosts}


def noted(listing: Listing) -> str:
    return "\n".join(listing.notes)


def loaded(tmp_path: Path, listing: Listing) -> dict[str, str]:
    """Return the addresses of the hosts, once the listing was written and loaded as an inventory."""
    path = Path(mkdtemp(dir=tmp_path)) / "inventory.py"  # pyinfra keeps the code of a path
    path.write_text(render_inventory(listing))
    return {node.name: node.ssh_address for node in load_inventory(path).nodes}


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have a text on standard input."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
