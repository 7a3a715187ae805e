"""``remedy explain``: a remedy or a cause in words."""

from __future__ import annotations

import click

from remedy.cli.common import errors_shown
from remedy.cli.plain import say


@click.command()
@click.argument("name", required=False)
def explain(name: str | None) -> None:
    """Explain a remedy, a cause and what cures it, or a section of settings; without a NAME, list them."""
    with errors_shown():
        from remedy.report import explain as words

        text = words.overview() if name is None else words.explain(name)
        say(text)  # plain text: rich would take longer to load than the text to make
