"""``remedy completion``: what makes a shell complete the words of a command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from remedy.cli import names, plain
from remedy.cli.one_of import OneOf
from remedy.text import is_number

VARIABLE = "_REMEDY_COMPLETE"
# What stands between the hosts of --limit, and between the remedies of --only.
_BETWEEN = re.compile(r"[,!&^]")
# At the begin of a part ^ stands for a file of hosts, and for none by its name.
_FILE = re.compile(r"(?:^|[,!&^])\^$")

SECTIONS = ("cluster", "apply", "approval", "verify", "ssh")

Source = Callable[[list[str]], list[str]]

_HOSTS: Source = names.hosts
_REMEDIES: Source = lambda _: names.remedies()  # noqa: E731
# By the name of a parameter, whatever command has it; with the name of a command in front for that one alone.
SOURCES: dict[str, Source] = {
    "limit": _HOSTS,
    "replace": _HOSTS,
    "divide": lambda words: [name[1:] for name in names.hosts(words) if name.startswith("@")],
    "hosts": _HOSTS,
    "only": _REMEDIES,
    "skip": _REMEDIES,
    "run": lambda words: ["latest", *names.runs(words, ("apply", "rollback"))],
    "resume": lambda words: ["latest", *names.runs(words, ("apply",))],
    "plan_or_run": lambda words: ["latest", *names.runs(words)],
    "name": lambda _: [*names.remedies(), *names.causes(), *SECTIONS],
    "fault_names": lambda _: names.faults(),
    "broken": lambda _: names.faults(),
    "host": names.lab_hosts,
    "break host": lambda words: [*names.lab_hosts(words), "all"],
    "facts groups": lambda _: names.facts(),
    "lab name": lambda _: names.labs(),
}


class _Joined:
    """Completion of any shell: an option may be joined to its value by =, whole or set apart."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one."""
        args, incomplete = super().get_completion_args()  # type: ignore[misc]
        pairs = zip(("", *args), args, strict=False)
        return [word for last, word in pairs if word != "=" or last[:2] != "--"], incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return what may be in the place of a word; where that begins with an option, this does, too."""
        items: list[CompletionItem] = super().get_completions(args, incomplete)  # type: ignore[misc]
        option, equals, _ = incomplete.partition("=")
        for item in items if equals and option.startswith("--") else ():
            item.value = f"{option}={item.value}"
        return items


class Bash(_Joined, BashComplete):
    """Completion of bash, which sets = apart, and would end a word at the @ of a group."""

    source_template = f"COMP_WORDBREAKS=${{COMP_WORDBREAKS//@/}}\n{BashComplete.source_template}"


class Zsh(_Joined, ZshComplete):
    """Completion of zsh."""


class Fish(_Joined, FishComplete):
    """Completion of fish, which is to take a word or a description with a comma in it whole."""

    source_template = FishComplete.source_template.replace(
        'string split "," $completion', 'string split -m 1 "," -- $completion'
    )


SHELLS = {style.name: style for style in (Bash, Zsh, Fish)}


def register() -> None:
    """Have click ask these when a shell wants words."""
    for style in SHELLS.values():
        add_completion_class(style)


@click.command()
@click.argument("shell", metavar="SHELL", type=OneOf(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands, options, hosts, groups, runs, remedies, causes and more.

    \b
    bash: eval "$(remedy completion bash)"           in ~/.bashrc
    zsh:  eval "$(remedy completion zsh)"            in ~/.zshrc, after compinit
    fish: remedy completion fish | source            in ~/.config/fish/config.fish

    Names of hosts and groups are those that the last command on an inventory saw; no inventory is run.
    """
    script = SHELLS[shell](context.find_root().command, {}, "remedy", VARIABLE)
    plain.say((script.source_template % script.source_vars()).strip("\n"))


def teach(command: click.Command) -> click.Command:
    """Have a command's parameters complete what they name."""
    if isinstance(command, click.Group):
        for child in command.commands.values():
            teach(child)
    for parameter in command.params:
        if parameter.name == "source" and command.name == "init":
            setattr(parameter, "shell_complete", _kind_or_path)  # noqa: B010
            continue
        name = parameter.name or ""
        source = SOURCES.get(f"{command.name} {name}") or SOURCES.get(name)
        if source is not None and not getattr(parameter, "is_flag", False):
            setattr(parameter, "shell_complete", _completer(parameter, source))  # noqa: B010
    return command


def _completer(
    parameter: click.Parameter, source: Source
) -> Callable[[click.Context, str], list[CompletionItem]]:
    """Return what completes a parameter; of several names with commas between them the last one."""

    def complete(_: click.Context, incomplete: str) -> list[CompletionItem]:
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))
        end = max((match.end() for match in _BETWEEN.finditer(incomplete)), default=0)
        head, last = (
            (incomplete[:end], incomplete[end:]) if parameter.multiple else ("", incomplete)
        )
        if _FILE.search(head):
            return []
        matches = [name for name in source(words) if name.startswith(last)]
        items = [CompletionItem(head + name) for name in matches]
        if parameter.name == "plan_or_run":
            # First: at a file bash drops what it has, and offers files where nothing else fits.
            items.insert(0, CompletionItem(incomplete, type="file"))
        return items

    return complete


def _kind_or_path(_: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return what completes ``init --from``: a kind, and behind it a file."""
    from remedy.cli.init import KINDS

    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    place = os.environ.get("COMP_CWORD", "")
    if is_number(place) and not os.environ.get(VARIABLE, "").startswith("fish"):
        words = words[: int(place) + 1]
    # The word itself may not be there yet, and bash sets = apart.
    before = [word for word in words if word not in ("=", incomplete)]
    if before and before[-1] in ("--from", f"--from={incomplete}"):
        return [CompletionItem(kind) for kind in KINDS if kind.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file")]
