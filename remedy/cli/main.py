"""The command ``remedy``: one module for each command, loaded when it is called."""

from __future__ import annotations

import gc
import importlib

import click

from remedy import __version__

# Command name to the module of remedy.cli that holds it, in the order of a first use.
COMMANDS = {
    "init": "init",
    "check": "check",
    "plan": "plan",
    "show": "show",
    "approve": "approve",
    "apply": "apply",
    "verify": "verify",
    "rollback": "rollback",
    "unlock": "unlock",
    "history": "history",
    "audit": "audit",
    "schema": "schema",
    "diagnose": "diagnose",
    "explain": "explain",
    "trust": "trust",
    "lab": "lab",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed: ``--help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command called ``cmd_name``, None when there is none."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = getattr(importlib.import_module(f"remedy.cli.{module}"), module)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="remedy")
def main() -> None:
    """Fix the host state that hangs multi-node GPU training, and prove it with an all-reduce.

    \b
    A first time:      remedy check inventory.py     probe, change nothing
                       remedy apply inventory.py     plan, ask, fix, prove
    No cluster:        remedy lab up                 real hosts on this machine
    """
    # A command lives for seconds, and nearly every object that it makes lives to its end: collecting garbage as
    # often as by default cost a fifth of its time on 64 hosts.
    gc.set_threshold(200_000, 20, 100)
