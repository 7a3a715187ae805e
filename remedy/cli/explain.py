"""``remedy explain``: a remedy in words."""

from __future__ import annotations

import click

from remedy.cli.common import explained, out


@click.command()
@click.argument("name", required=False)
def explain(name: str | None) -> None:
    """Tell what a remedy is, which symptoms it cures and what it never does; without a NAME, list them."""
    with explained():
        from remedy.plan import find_remedy, remedies

        if name is None:
            for remedy in remedies():
                out.print(f"{remedy.name:<16}{remedy.text.strip().splitlines()[0]}", markup=False)
            return
        remedy = find_remedy(name)
        out.print(f"{remedy.title}\n\n{remedy.text.strip()}\n", markup=False)
        out.print(f"Causes it cures: {', '.join(remedy.cures)}", markup=False)
        out.print(f"Settings, section `{remedy.name}` of remedy.yaml:", markup=False)
        for key, field in remedy.spec.model_fields.items():
            out.print(f"  {key}: {field.default!r}", markup=False)
