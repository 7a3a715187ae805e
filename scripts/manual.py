"""The manual pages in man/, made from the program's own help; scripts/docs writes them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from remedy import __version__
from remedy.cli.main import COMMANDS, main

EXIT_CODES = (
    ("0", "All is well, or as it was asked for."),
    ("1", "Something failed, is blocked or is unknown; with --strict also what is only reported."),
    ("2", "The command line, the inventory, the settings or a plan file cannot be used."),
    ("3", "Not proved: the all-reduce did not give the exact sum everywhere."),
    ("4", "Refused, for safety: a host key, a stale plan, a lock, no consent."),
    ("5", "A host could not be reached."),
    ("10", "With --exit-code: changes are pending."),
    ("128+N", "Signal N ended the command."),
)
FILES = (
    ("inventory.py", "The hosts, as pyinfra has them."),
    ("remedy.yaml", "The settings, beside the inventory; it may be missing."),
    (".remedy/", "The journal and the plans of runs, beside the inventory."),
    ("/var/lib/remedy/", "On a host: what was there before each change."),
)


def pages() -> dict[str, str]:
    """Return every manual page by its path."""
    context = click.Context(main, info_name="remedy", **main.context_settings)
    made = {"man/remedy.1": page(main, context, "fix hosts on which multi-node GPU training hangs")}
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        made |= command_pages(command, name, context, COMMANDS[name])
    return made


def command_pages(command, name, parent, summary: str) -> dict[str, str]:
    """Return the page of a command, and those of the commands below it."""
    context = click.Context(command, info_name=name, parent=parent)
    path = context.command_path.replace(" ", "-")
    made = {f"man/{path}.1": page(command, context, summary)}
    for child, below in sorted(getattr(command, "commands", {}).items()):
        made |= command_pages(below, child, context, below.get_short_help_str(100))
    return made


def page(command: click.Command, context: click.Context, summary: str) -> str:
    """Return one page."""
    path = context.command_path
    title = path.replace(" ", "-")
    lines = [
        '.\\" Made by scripts/docs from the help of the program.',
        f'.TH {roff(title.upper())} 1 "" "remedy {__version__}" "remedy"',
        ".SH NAME",
        f"{roff(title)} \\- {roff(summary[:1].lower() + summary[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {roff(path)}",
        roff(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
    ]
    records = [
        param.get_help_record(context)
        for param in command.get_params(context)
        if isinstance(param, click.Option)
    ]
    lines += listed("OPTIONS", (record for record in records if record is not None))
    children = COMMANDS if command is main else {}
    for name, child in sorted(getattr(command, "commands", {}).items()):
        children = {**children, name: child.get_short_help_str(100)}
    lines += listed("COMMANDS", children.items())
    if command is main:
        lines += listed("EXIT STATUS", EXIT_CODES) + listed("FILES", FILES)
    above = "remedy" if context.parent is None else context.parent.command_path.replace(" ", "-")
    others = [f"{title}-{name}" for name in children] or [above]
    last = len(others) - 1
    references = enumerate(sorted(others))
    see = "\n".join(f".BR {roff(name)} (1){',' * (n < last)}" for n, name in references)
    return "\n".join([*lines, ".SH SEE ALSO", see]) + "\n"


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; one that begins with \\b keeps its lines."""
    for paragraph in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(roff, paragraph.splitlines()[1:]), ".fi")
        else:
            yield roff(" ".join(paragraph.split()))


def listed(heading: str, rows) -> list[str]:
    """Return a section of names with their texts; nothing where there is none."""
    lines = [line for name, text in rows for line in (".TP", f".B {roff(name)}", roff(text))]
    return [f".SH {heading}", *lines] if lines else []


def roff(text: str) -> str:
    """Return a line of text as roff reads it: nothing in it is a request or an escape."""
    escaped = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("|", "|\\:")
    )
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
