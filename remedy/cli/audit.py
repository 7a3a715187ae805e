"""``remedy audit``: check the chain of the journal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from remedy.cli.common import explained, out


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
def audit(inventory: Path) -> None:
    """Check that no record of INVENTORY's journal was edited, removed or moved."""
    with explained():
        from remedy.audit.journal import FILE_NAME, verify_chain

        path = inventory.resolve().parent / ".remedy" / FILE_NAME
        if not path.exists():
            out.print(f"there is no journal {path}: nothing was done yet", markup=False)
            return
        count, problem = verify_chain(path)
        if problem:
            out.print(f"{path}: {problem}; {count} records before it are good", markup=False)
            sys.exit(1)
        out.print(f"{path}: {count} records, the chain is whole", markup=False)
