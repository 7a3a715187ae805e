"""What a wrong option was meant to be: one of the command's own that is near, or what other tools call so."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from remedy.cli.names import USUAL
from remedy.text import quoted

# How like an option has to be, dashes aside: `--limt` is --limit, and `--bogus` is not --verbose.
LIKE = 0.7
# Letters from which on a part of an option counts: `--sudo` for --ask-sudo-password.
PART = 3

# By an option of other tools (apt, ansible, make, terraform, clush), the option that does the same here.
HABITS: Mapping[str, str] = {
    **dict.fromkeys(("-y", "--assume-yes", "--auto-approve", "--no-confirm"), "--yes"),
    **dict.fromkeys(("-l", "-w", "--hosts", "--nodes", "--target"), "--limit"),
    **dict.fromkeys(("-C", "-n", "--check", "--dry-run", "--simulate", "--noop"), "--rehearse"),
    **dict.fromkeys(("-D", "--diff", "--show-commands"), "--commands"),
    **dict.fromkeys(("-t", "--tags"), "--only"),
    "--skip-tags": "--skip",
    **dict.fromkeys(("-v", "-vv", "--debug"), "--verbose"),
    **dict.fromkeys(("-q", "--silent"), "--quiet"),
    **dict.fromkeys(("-o", "--out"), "--output"),
    "-j": "--json",
    **dict.fromkeys(("-K", "--ask-become-pass", "--ask-sudo-pass"), "--ask-sudo-password"),
    "-?": "--help",
}
_PLAN = "what would change is shown by: remedy plan INVENTORY"
_ARGUMENT = "the inventory is typed without an option"
_USER = "the user is ssh_user in the inventory, or User in ssh_config"
_WITHOUT = "hosts are left out by: --limit '*!HOSTS'"
_ROOT = "remedy becomes root by itself where it has to"
# By the same, what to do where the command has no such option.
ELSEWHERE: Mapping[str, str] = {
    **{name: _PLAN for name, option in HABITS.items() if option == "--rehearse"},
    **{name: "this command asks nothing" for name, option in HABITS.items() if option == "--yes"},
    **dict.fromkeys(("-i", "--inventory"), _ARGUMENT),
    **dict.fromkeys(("-b", "--become", "--sudo"), _ROOT),
    **dict.fromkeys(("-u", "--user", "--remote-user"), _USER),
    **dict.fromkeys(("-x", "--exclude"), _WITHOUT),
    **dict.fromkeys(("-V", "--version"), "the version is shown by: remedy --version"),
    "--html": "pages are written by plan, apply, verify, rollback, show and history",
}
# Words that are no commands here, with what does the same.
COMMANDS: Mapping[str, str] = {
    "help": "it is shown by: remedy --help",
    "version": "it is shown by: remedy --version",
    **dict.fromkeys(("diff", "preview", "dry-run"), "what would change is shown by: remedy plan"),
    **dict.fromkeys(
        ("status", "doctor", "scan", "validate", "ping"), "what is wrong is shown by: remedy check"
    ),
    **dict.fromkeys(("run", "fix", "deploy", "repair"), "hosts are repaired by: remedy apply"),
    **dict.fromkeys(("test", "prove", "bench"), "hosts are tested by: remedy verify"),
    **dict.fromkeys(
        ("undo", "revert", "restore", "destroy"), "a run is taken back by: remedy rollback"
    ),
    **dict.fromkeys(("log", "logs", "list", "runs"), "runs are listed by: remedy history"),
}
BEHIND = "options are typed behind the command: remedy COMMAND OPTIONS"


def advice(option: str, options: Iterable[str], *, takes_inventory: bool = True) -> str:
    """Return what to type in place of an option that a command has not, in a few words; "" for nothing.

    Args:
        option: as it was typed, with its dashes.
        options: those that the command has, short and long ones.
        takes_inventory: whether the command has an inventory as its argument.

    >>> advice("-y", ["--yes"]), advice("--limt", ["--limit"]), advice("--bogus", ["--verbose"])
    ('Did you mean --yes?', 'Did you mean --limit?', '')
    """
    known = list(options)
    usual = HABITS.get(option)
    if usual in known:
        return f"Did you mean {usual}?"
    words = ELSEWHERE.get(option, "")
    if words and (takes_inventory or words != _ARGUMENT):
        return words
    near = nearest(option, known)
    return f"Did you mean {' or '.join(near)}?" if near else ""


def nearest(option: str, options: Iterable[str]) -> list[str]:
    """Return up to two long options that are near to one, the nearest first; none for a short one."""
    if not option.startswith("--"):
        return []
    name = option.removeprefix("--")
    names = [known.removeprefix("--") for known in options if known.startswith("--")]
    near = get_close_matches(name, names, n=2, cutoff=LIKE)
    parts = [known for known in names if len(name) >= PART and name in known]
    return [f"--{known}" for known in dict.fromkeys((*near, *parts))][:2]


def command_advice(message: str, word: str, commands: Iterable[str]) -> str:
    """Return the message about a command that there is not, with what does the same, or the nearest."""
    if word in COMMANDS:
        return f"{message.rstrip('.')}: {COMMANDS[word]}."
    near = get_close_matches(word, list(commands), n=1)
    return f"{message} Did you mean {near[0]!r}?" if near else message


def argument_advice(
    command: str, names: Container[str], values: Mapping[str, object], *, missing: str, extra: str
) -> str:
    """Return what was meant where an argument is missing, or there is one too many; "" where nobody can say.

    Args:
        command: as it is typed.
        names: of its parameters, and of its options as they are typed.
        values: those that are there, by the name of their parameter.
        missing: the parameter that is missing, "" for none.
        extra: the words that are too many, "" for none.
    """
    run = values.get("run")
    if missing == "inventory" and isinstance(run, str) and Path(run).is_file():
        return f"the run is typed first: {command} latest {quoted(run)}"
    if missing == "inventory" and Path(USUAL).is_file():
        before = f"{quoted(run)} " if isinstance(run, str) else ""
        return f"here it is {USUAL}: {command} {before}{USUAL}"
    for option, noun in (("--inventory", "the inventory"), ("--plan", "a plan")):
        if extra and option in names and Path(extra).is_file():
            return f"{noun} is given by {option} {quoted(extra)}"
    if extra and "--limit" in names and "inventory" in names:
        return f"hosts are chosen by --limit {quoted(','.join(extra.split()))}"
    return ""
