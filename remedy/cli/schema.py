"""``remedy schema``: the JSON Schema of the documents that remedy writes."""

from __future__ import annotations

import click

from remedy.cli.common import errors_shown
from remedy.cli.plain import print_json

KINDS = ("plan", "run", "diagnosis", "journal")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
def schema(kind: str) -> None:
    """Print the JSON Schema of a plan file, of what --json prints, or of a record of the journal.

    A reader ignores fields that it does not know; a change that breaks readers has a new format_version, or a
    new number in "schema".
    """
    with errors_shown():
        from remedy.report.schema import schema_of

        print_json(schema_of(kind))
