"""Which block the hosts files of a large fleet are expected to have, so that a host need not send it.

It follows from the inventory, or from the hosts as they were read, or a run before found it: the long names in
the block come from the hosts' own files. A block that is expected in vain costs bytes and nothing else.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path

from remedy.files import kept_mode, make_folder, write_whole
from remedy.plan import Fleet
from remedy.probe import File
from remedy.probe.blocks import LEAST, PATH, marks_of, worth_asking

NAME = "hosts-block"
FEWEST = LEAST // 64
"""Hosts below which no block is as long as it has to be; a line takes some 30 bytes, with long names 60."""

MOST = 4 << 20
"""Bytes of a file that are read; a hosts file that is longer, the probe does not send."""

SAMPLE = 8
"""Hosts with a block of which is kept what most of them have."""


def expected_blocks(home: Path, fleet: Fleet) -> tuple[bytes, ...]:
    """Return the blocks of which hosts are asked whether they have one of them.

    Args:
        home: the folder of the journal.
        fleet: the hosts; with the states of those that were read.
    """
    if len(fleet.inventory.names) < FEWEST:
        return ()
    from remedy.deploys._hosts_block import expected

    blocks = (expected(fleet), _kept(home))
    return tuple(dict.fromkeys(block for block in blocks if worth_asking(block)))


def keep_block(home: Path, fleet: Fleet) -> None:
    """Keep the block that hosts have, for the next run; without a word where that is not possible."""
    if len(fleet.inventory.names) < FEWEST:
        return
    from remedy.edit.hosts import block_text

    files = (state.file(PATH) for state in fleet.states.values())
    blocks = (block_text(file.content) for file in files if isinstance(file, File))
    counts = Counter(islice(filter(worth_asking, blocks), SAMPLE))
    for block, _ in counts.most_common(1):
        if block != _kept(home):
            with suppress(OSError):
                make_folder(home)
                write_whole(home / NAME, block, mode=kept_mode(home))


def _kept(home: Path) -> bytes:
    """Return the block that was kept; b"" where there is none that hosts can be asked for."""
    from remedy.edit.hosts import managed_block

    try:
        with (home / NAME).open("rb") as file:
            block = file.read(MOST)
        is_block = marks_of((block, managed_block(b"")))
    except (OSError, ValueError):
        return b""
    return block if is_block else b""
