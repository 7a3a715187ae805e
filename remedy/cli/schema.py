"""``remedy schema``: the JSON Schema of the documents that remedy writes, and of its settings."""

from __future__ import annotations

import click

from remedy.cli.common import errors_shown
from remedy.cli.one_of import OneOf
from remedy.cli.plain import print_json

# As remedy.report.schema has them, which is dear to import; a test compares the two.
KINDS = (
    *("spec", "plan", "run", "facts", "diagnosis", "history", "story"),
    *("journal", "audit", "accept", "export", "trust", "error", "lab-status"),
)


@click.command()
@click.argument("kind", metavar="KIND", type=OneOf(KINDS))
def schema(kind: str) -> None:
    """Print the JSON Schema of remedy.yaml (spec), of a plan file, of a record of the journal, or of --json.

    \b
    KIND: spec, plan, run, facts, diagnosis, history, story,
          journal, audit, accept, export, trust, error, lab-status

    A reader ignores fields that it does not know; a change that breaks readers has a new format_version, or a
    new number in "schema". `spec` is for editors: the first line of what `remedy init` writes names it.
    """
    with errors_shown():
        from remedy.report.schema import model_schema, schema_of, spec_schema

        if kind == "spec":
            print_json(spec_schema())
        elif kind == "lab-status":
            from remedy.lab.status import LabStatusDocument

            print_json(model_schema(kind, LabStatusDocument))
        else:
            print_json(schema_of(kind))
