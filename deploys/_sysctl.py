"""The step that gives the running kernel other settings, for the remedies that need one. Not a remedy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from remedy.edit.sysctl import key_of, path_of
from remedy.plan import CommandAction, command
from remedy.probe import Sysctls


def live_action(
    before: Mapping[str, str], after: Mapping[str, str], undo: str = ""
) -> CommandAction:
    """Return the step that gives the kernel other values, in the order of ``after``.

    Args:
        before: dotted name to the value it has, white space folded.
        after: the same names to the values that they get.
        undo: further sh text, run once the former values are back.
    """
    keys = sorted(after)
    paths = [path_of(key) for key in keys]
    back = [*(_write(key, before[key]) for key in after), *([undo] if undo else [])]
    return CommandAction(
        observe=f"for f in {command(paths)}; do tr -s '\\t' ' ' <\"$f\"; done",
        before="\n".join(before[key] for key in keys).rstrip("\n"),
        after="\n".join(after[key] for key in keys).rstrip("\n"),
        do=" && ".join(_write(key, value) for key, value in after.items()),
        undo=" && ".join(back),
    )


def after_live(sysctls: Sysctls, action: CommandAction, keys: tuple[str, ...]) -> Sysctls:
    """Return the settings after a step of ``live_action`` on ``keys``."""
    values = action.after.split("\n")
    values += [""] * (len(keys) - len(values))
    found = dict(zip(sorted(keys), values, strict=True))
    return sysctls.model_copy(update={"live": {**sysctls.live, **found}})


def keys_of(action: CommandAction) -> tuple[str, ...]:
    """Return the names that a step of ``live_action`` is about."""
    words = shlex.split(action.observe.partition("; do ")[0])[3:]
    return tuple(key_of(word) for word in words)


def _write(key: str, value: str) -> str:
    return f"{command(['echo', value])} >{command([path_of(key)])}"
