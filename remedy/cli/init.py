"""``remedy init``: write the first inventory and a commented spec."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remedy.cli.common import errors_shown
from remedy.cli.paths import FilePath
from remedy.cli.terminal import out
from remedy.errors import UsageError
from remedy.files import create_whole
from remedy.text import counted, folded, quoted

if TYPE_CHECKING:
    from remedy.inventory.elsewhere import Listing


# As remedy.inventory.elsewhere has them, which is dear to import; a test compares the two.
KINDS = ("ansible", "clustershell", "hostfile", "slurm")

_NEEDED = (
    "Option '--from' needs KIND and PATH, such as --from hostfile hosts.txt (- is standard input). "
    f"Kinds: {', '.join(KINDS)}."
)


class _Init(click.Command):
    """The command, which says what --from takes where it has too little."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        behind = args[args.index("--from") + 1 :][:2] if "--from" in args else ()
        # click takes the next option for the path.
        if any(word.startswith("--") for word in behind) and not ctx.resilient_parsing:
            raise click.BadOptionUsage("--from", _NEEDED, ctx)
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            if error.option_name == "--from":
                error.message = _NEEDED  # type: ignore[misc]
            raise


@click.command(cls=_Init)
@click.option(
    "--from",
    "source",
    nargs=2,
    metavar="KIND PATH",
    help="Take the hosts from a different program: ansible, clustershell, hostfile or slurm, and a path; "
    "- is standard input.",
)
@click.option(
    "--directory",
    type=FilePath(file_okay=False),
    default=Path(),
    help="Where to write; default: the current folder.",
)
def init(source: tuple[str, str] | None, directory: Path) -> None:
    """Write inventory.py, a commented remedy.yaml and its schema; files that exist already are left alone.

    Hosts of a different program are written into a new inventory.py only: where there is one with other hosts,
    nothing is written, and the exit code is 2.
    """
    with errors_shown():
        from remedy.cli.plain import as_text
        from remedy.plan import section_models
        from remedy.report.schema import spec_schema
        from remedy.report.starter import EXAMPLE, SCHEMA_NAME, render_inventory, render_spec

        listing = EXAMPLE
        if source is not None:
            from remedy.inventory.elsewhere import read_hosts

            listing = read_hosts(*source)
            _show(listing)
        files = {
            "inventory.py": render_inventory(listing),
            "remedy.yaml": render_spec(section_models()),
            SCHEMA_NAME: as_text(spec_schema()),
        }
        if source is not None:
            _check_new(directory / "inventory.py", files["inventory.py"], source)
        directory.mkdir(parents=True, exist_ok=True)
        is_new = not (directory / "inventory.py").exists()
        for name, text in files.items():
            path = directory / name
            if path.exists():
                out.print(f"{path} exists already and was left alone")
                continue
            create_whole(path, text)
            out.print(f"wrote {path}")
        inventory = quoted(directory / "inventory.py")
        edit = f"put your hosts into {inventory}; then " if is_new and source is None else ""
        out.print(f"Next: {edit}remedy trust {inventory}, and remedy plan {inventory}")


def _check_new(path: Path, text: str, source: tuple[str, str]) -> None:
    """Refuse to go on where a different inventory is in the place of the new one.

    Raises:
        UsageError: there is one; nothing is written.
    """
    with suppress(OSError):
        if not path.exists() or path.read_bytes() == text.encode():
            return
    again = f"remedy init --from {' '.join(map(quoted, source))} --directory FOLDER"
    raise UsageError(
        f"{path} exists already, with other hosts; nothing was written",
        next_step=f"Write them into a new folder: {again}",
    )


def _show(listing: Listing) -> None:
    """Print which hosts there are, and what was left out or taken in a different way."""
    names = [host.name for host in listing.hosts]
    out.print(f"{counted(len(names), 'host')}: {folded(names)}")
    for sentence in listing.notes:
        out.print(f"  {sentence}")
