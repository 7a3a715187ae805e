"""``remedy init``: write the first inventory and a commented spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remedy.cli.common import errors_shown
from remedy.cli.terminal import out
from remedy.errors import UsageError
from remedy.files import create_whole

if TYPE_CHECKING:
    from remedy.report.starter import StarterHost


@click.command()
@click.option(
    "--from",
    "source",
    nargs=2,
    metavar="KIND PATH",
    help="Take the hosts from a file: hostfile, ansible (INI) or slurm.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where to write; default: the current folder.",
)
def init(source: tuple[str, str] | None, directory: Path) -> None:
    """Write inventory.py and a commented remedy.yaml; files that exist already are left alone."""
    with errors_shown():
        from remedy.plan import section_models
        from remedy.report.starter import EXAMPLE, render_inventory, render_spec

        hosts = EXAMPLE if source is None else _read(*source)
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("inventory.py", render_inventory(hosts)),
            ("remedy.yaml", render_spec(section_models())),
        ):
            path = directory / name
            if path.exists():
                out.print(f"{path} exists already and was left alone")
                continue
            create_whole(path, text)
            out.print(f"wrote {path}")
        out.print(
            f"Next: remedy trust {directory / 'inventory.py'}, then remedy check {directory / 'inventory.py'}"
        )


def _read(kind: str, path: str) -> tuple[StarterHost, ...]:
    from remedy.report.starter import READERS, read_hosts

    if kind not in READERS:
        raise UsageError(f"--from {kind}: no such kind", next_step=f"Kinds: {', '.join(READERS)}.")
    return read_hosts(kind, Path(path))
