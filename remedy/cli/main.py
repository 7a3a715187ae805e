"""The command ``remedy``: one module for each command, loaded when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from remedy import __version__
from remedy.cli import document, plain
from remedy.cli.interrupt import NAMES, Interrupted, interruptible, leave, number_of, received
from remedy.cli.next_step import to_copy
from remedy.errors import OutputError
from remedy.text import visible

# Each command with its line in the help, in the order of a first use; its module in remedy.cli has its name.
# The lines stand here so that the help imports none of these modules.
COMMANDS = {
    "init": "Write a first inventory.py and a commented remedy.yaml.",
    "check": "Probe the hosts and report what is wrong; change nothing.",
    "plan": "Show what `apply` would change, and save it; change nothing.",
    "show": "Render a plan file, or a run by its id.",
    "approve": "Sign a plan with an ssh key.",
    "apply": "Repair the hosts, and prove it with an all-reduce.",
    "verify": "Prove the hosts as they are; change nothing.",
    "rollback": "Take a run back.",
    "unlock": "Release the lock that a run holds on hosts.",
    "history": "List the runs on the hosts of an inventory.",
    "audit": "Check the journal, and export it as a table.",
    "facts": "Print all that the probe knows of the hosts.",
    "schema": "Print the JSON Schema of the settings, or of a document.",
    "diagnose": "Name the cause of a failed run from its logs.",
    "explain": "Explain a remedy, a cause or a section of settings.",
    "completion": "Print what makes a shell complete hosts, runs, remedies and more.",
    "trust": "Show the ssh host keys, and record those that are new.",
    "lab": "A throw-away cluster of real hosts on this machine.",
}


# pydantic would look for plugins of its own in all that is installed, before the first model is made.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

HELP = ["-h", "--help"]
COMPLETE = "_REMEDY_COMPLETE"
REFUSED = 4
NO_ANSWER = "no answer; nothing was changed"
ANSWER = "Run the command again at a terminal, and answer what it asks."
ROOM = "Make room there, or write elsewhere."
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)


# Commands on hosts that have no --only and --skip, with the reason; others name no host or no remedy.
WITHOUT_CHOICE = {
    "unlock": "a lock is of a run as a whole, whichever remedies changed the host",
    "facts": "facts are what the probe read before any remedy decides; name the facts instead",
    "diagnose": "a cause is compared with what all remedies find, and without its remedy it would seem refuted",
    "trust": "it reads host keys, and no remedy decides about these",
    "audit": "the journal holds runs as a whole",
    "show": "a run or a plan is shown as it is on record",
    "history": "runs are listed as they are on record",
}

# Commands whose result is no document, with what there is in its place.
WITHOUT_JSON = {
    "init": "what it writes are files, which it names",
    "approve": "the signature is a file beside the plan",
    "schema": "it prints nothing but one JSON document",
    "explain": "it prints words; `remedy schema spec` has every setting",
    "completion": "it prints what a shell runs",
    "lab": "`remedy lab status --json` has the hosts of the lab",
}
REASONS = {"--only": WITHOUT_CHOICE, "--skip": WITHOUT_CHOICE, "--json": WITHOUT_JSON}


def _with_reason(error: click.ClickException, message: str) -> str:
    """Return the message of an error; of a wrong option with what is near, or why only others have it."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return _with_arguments(error, message)
    from remedy.cli.nearest import BEHIND, advice

    words = error.ctx.command_path.split()[1:2]
    reason = REASONS.get(error.option_name, {}).get(words[0]) if words else None
    error.possibilities = None  # type: ignore[misc]  # what click takes for near is not
    if reason is not None:
        return f"{message.rstrip('.')}: {reason}."
    params = error.ctx.command.get_params(error.ctx)
    near = advice(
        error.option_name,
        [name for param in params for name in (*param.opts, *param.secondary_opts)],
        takes_inventory=any(param.name == "inventory" for param in params),
    )
    near = near or _of_group(error.option_name, error.ctx) or ("" if words else BEHIND)
    if near.endswith("?"):
        return f"{message} {near}"
    return f"{message.rstrip('.')}: {near}." if near else message


def _with_arguments(error: click.ClickException, message: str) -> str:
    """Return the message of an error; of an argument that is missing or one too many, what was meant."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    from remedy.cli.nearest import argument_advice

    missing = error.param.name if isinstance(error, click.MissingParameter) and error.param else ""
    extra = message.partition("Got unexpected extra argument")[2].strip(" s()")
    names = {name for param in error.ctx.command.params for name in (param.name or "", *param.opts)}
    advice = argument_advice(
        error.ctx.command_path, names, error.ctx.params, missing=missing or "", extra=extra
    )
    if not advice:
        return message
    # click writes the sentence about one that is missing before the message.
    return f"{message.rstrip('.')}: {advice}" if message else f"{advice[0].upper()}{advice[1:]}"


def _of_group(option: str, ctx: click.Context) -> str:
    """Return where an option is typed that the group of a command has; "" where it has none of the name."""
    group = ctx.parent
    if group is None or not any(option in param.opts for param in group.command.params):
        return ""
    return f"it is typed before the command: {group.command_path} {option} ... {ctx.info_name}"


def _say(text: str) -> None:
    with suppress(OSError):
        plain.say(text, err=True)


def _end_by(number: int) -> NoReturn:
    """End a command by a signal that came while no host was at work."""
    if number != signal.SIGPIPE:
        _say(f"interrupted: {NAMES[number]}")
        document.print_error(f"interrupted: {NAMES[number]}", 128 + number)
    leave(number)


class Context(click.Context):
    """The context of a command that every wrong command line names: click's parser leaves it out of some."""

    def __exit__(self, exc_type: Any, exc_value: Any, tb: Any) -> Any:
        """Note in an error which command it is of, if nothing below did."""
        if isinstance(exc_value, click.UsageError) and exc_value.ctx is None:
            exc_value.ctx = self
            exc_value.cmd = self.command  # type: ignore[misc]
        return super().__exit__(exc_type, exc_value, tb)


def _named(command: click.Command) -> click.Command:
    """Have the errors of a command, and of those in it, name the command."""
    command.context_class = Context
    if isinstance(command, click.Group):
        for child in command.commands.values():
            _named(child)
    return command


def _help_of(error: click.ClickException) -> str:
    """Return the next step after a wrong command line; "" where no command is known."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return f"See how it is called: {error.ctx.command_path} --help"


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed: ``--help`` stays quick."""

    context_class = Context
    misuse = 0
    """The code of a wrong command line, for where it cannot be told."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command called ``cmd_name``, None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"remedy.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        # Its own, and not only those of the group: click keeps the option as it was asked for first.
        command.context_settings.setdefault("help_option_names", HELP)
        _named(command)
        if COMPLETE in os.environ:
            from remedy.cli.completion import teach

            return teach(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a command line; where there is none of its name, the nearest is named."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from remedy.cli.nearest import command_advice

            # click knows the commands of a group that has them all imported.
            error.message = command_advice(error.message, args[0], COMMANDS)  # type: ignore[misc]
            raise

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line; signals end it in an orderly way."""
        plain.install()
        if COMPLETE in os.environ:
            from remedy.cli.completion import register

            register()
        arguments = options.get("args", args[0] if args else None)
        document.begin(sys.argv[1:] if arguments is None else list(arguments))
        with interruptible():
            try:
                return self._run(*args, **options)
            except BaseException:
                number = received()  # when the command had ended already
                if number is None:
                    raise
                _end_by(number)

    def _run(self, *args: Any, **options: Any) -> Any:
        """Run a command line, and tell where its output cannot be written."""
        try:
            return super().main(*args, **options)
        except OutputError as error:
            _say(f"error: {error.message}\n  {to_copy(error.next_step) or ROOM}")
            sys.exit(error.exit_code)
        except OSError as error:
            # What click writes by itself: the help, and what is wrong with a command line.
            if error.errno == errno.EPIPE and self.misuse:
                sys.exit(self.misuse)
            if error.filename is not None or error.errno not in UNWRITABLE:
                raise
            _say(f"error: the output cannot be written: {error.strerror}\n  {ROOM}")
            sys.exit(self.misuse or 1)
        finally:
            plain.forget_unwritten()

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse what comes before the name of a command."""
        try:
            return super().make_context(*args, **options)
        except click.ClickException as error:
            if isinstance(error, click.NoSuchOption):
                error.message = _with_reason(error, visible(error.message))  # type: ignore[misc]
            document.print_error(error.format_message(), error.exit_code, _help_of(error))
            raise
        except (Interrupted, OSError) as stop:
            number = number_of(stop)
            if number is None:
                raise
            _end_by(number)  # click would call it "Aborted!", and exit with 1

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what a signal ended before any host was at work ends in a line."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            # The name of a file can be in it; click fills it in once. Without a command a group says its help.
            if not isinstance(error, click.exceptions.NoArgsIsHelpError):
                error.message = _with_reason(error, visible(error.message))  # type: ignore[misc]
            self.misuse = error.exit_code
            document.print_error(error.format_message(), error.exit_code, _help_of(error))
            raise
        except BaseException as stop:
            number = number_of(stop)
            if number is None and not isinstance(stop, click.Abort):
                raise
            if number is None:
                _say(f"error: {NO_ANSWER}\n  {ANSWER}")
                document.print_error(NO_ANSWER, REFUSED, ANSWER)
                sys.exit(REFUSED)
            _end_by(number)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": HELP})
@click.version_option(__version__, prog_name="remedy")
def main() -> None:
    """Fix the host state that hangs multi-node GPU training, and prove it with an all-reduce.

    \b
    A first time:      remedy init                   write inventory.py to edit
                       remedy trust inventory.py     record the hosts' ssh keys
                       remedy plan inventory.py      probe, show, change nothing
                       remedy apply inventory.py     plan, ask, fix, prove
    No cluster:        remedy lab up                 real hosts on this machine
    """
    # A command lives for seconds, and nearly every object that it makes lives to its end: collecting garbage as
    # often as by default cost a fifth of its time on 64 hosts.
    gc.set_threshold(200_000, 20, 100)
    # Nor is it all looked through once more when the process ends: that took a tenth of a second.
    atexit.register(gc.freeze)
