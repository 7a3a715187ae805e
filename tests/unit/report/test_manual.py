"""The manual pages: one a command, and none that roff warns about."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from remedy.cli.main import COMMANDS, main

PAGES = Path(__file__).parents[3] / "man"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the name of its page."""

    def below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        for part, child in getattr(command, "commands", {}).items():
            yield from below(f"{name}-{part}", child)

    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        yield from below(f"remedy-{name}", command)


def test_every_command_has_a_page_with_each_of_its_options() -> None:
    known = dict(commands())
    assert {path.stem for path in PAGES.glob("*.1")} == {"remedy", *known}
    for name, command in known.items():
        text = (PAGES / f"{name}.1").read_text().replace("\\-", "-")
        for param in command.params:
            if isinstance(param, click.Option):
                assert all(option in text for option in param.opts), (name, param.opts)


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here")
def test_roff_reads_every_page_without_a_warning() -> None:
    pages = [str(path) for path in sorted(PAGES.glob("*.1"))]
    command = ["groff", "-man", "-Tascii", "-ww", "-z", *pages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
