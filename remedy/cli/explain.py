"""``remedy explain``: a remedy or a cause in words."""

from __future__ import annotations

import click

from remedy.cli.common import errors_shown
from remedy.cli.plain import say


@click.command()
@click.argument("name", required=False)
def explain(name: str | None) -> None:
    """Explain what a remedy does, or what a cause is and which remedy cures it; without a NAME, list them."""
    with errors_shown():
        from remedy.report import explain as words

        text = words.overview() if name is None else words.explain(name)
        say(text)  # plain text: rich would take longer to load than the text to make
