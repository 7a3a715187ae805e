"""Cutting a journal and its head together, so that nothing beside them tells."""

from __future__ import annotations

import json
from pathlib import Path

from remedy.audit.journal import FILE_NAME, HEAD_NAME


def cut(home: Path, count: int) -> None:
    """Cut the journal after some records, and put a head beside it that names the last one left."""
    path = home / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)[:count]
    path.write_bytes(b"".join(lines))
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    head = {"journal": first["hash"], "seq": last["seq"], "hash": last["hash"]}
    (home / HEAD_NAME).write_text(json.dumps(head))
