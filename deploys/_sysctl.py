"""What remedies that set kernel settings share: a file of their own for the next boot, and the values in force.

Not a remedy. The files are those of sysctl.d(5); ``remedy.edit.sysctl`` reads and writes them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from remedy.edit import sysctl
from remedy.edit.sysctl import key_of, path_of
from remedy.plan import Change, Command, CommandAction, Workbench, command
from remedy.plan.registry import Promise
from remedy.probe import File, HostState, Sysctls


def live_command(before: Mapping[str, str], after: Mapping[str, str], undo: str = "") -> Command:
    """Return the command that gives the kernel other values, in the order of ``after``.

    Args:
        before: dotted name to the value it has, white space folded.
        after: the same names to the values that they get.
        undo: further sh text, run once the former values are back.
    """
    keys = sorted(after)
    paths = [path_of(key) for key in keys]
    back = [*(_write(key, before[key]) for key in after), *([undo] if undo else [])]
    return {
        "observe": f"for f in {command(paths)}; do tr -s '\\t' ' ' <\"$f\"; done",
        "before": "\n".join(before[key] for key in keys).rstrip("\n"),
        "after": "\n".join(after[key] for key in keys).rstrip("\n"),
        "do": " && ".join(_write(key, value) for key, value in after.items()),
        "undo": " && ".join(back),
    }


def note_overruled(bench: Workbench[Any], path: str, settings: Mapping[str, str]) -> None:
    """Say which settings of the file at ``path`` another file decides at boot."""
    for key, line in sysctl.beaten_by(bench.host, path, settings):
        bench.blocked(
            f"{line.path} gives {key} another value at boot, after remedy's file",
            f"{line.path}:{line.line}: {key} = {line.value}, needs {settings[key]}",
            f"Remove that line, or give it the value {settings[key]}.",
        )


def withdraw(bench: Workbench[Any], path: str, rest: str, *, guarded: bool = False) -> None:
    """Remove remedy's file where nothing asks for it any more; ``rest`` says what stays until the next boot."""
    file = bench.host.files.get(path)
    if isinstance(file, File) and file.exists:
        finding = bench.drift(f"nothing asks for {path} any more")
        bench.remove(path, f"remove {path}; {rest}", because=finding, guarded=guarded)


def promise_with(path: str) -> Promise:
    """Return the promise of a remedy that sets values and keeps them in the file at ``path``."""

    def promise(state: HostState, change: Change) -> HostState:
        """Return what the probe finds after the change: what is in force, and what the files say."""
        assert isinstance(state.sysctls, Sysctls)
        if isinstance(change.action, CommandAction):
            after = after_live(state.sysctls, change.action)
        else:
            file = state.file(path)
            content = file.content if isinstance(file, File) and file.exists else None
            after = sysctl.persisted_with(state.sysctls, path, content)
        return state.model_copy(update={"sysctls": after})

    return promise


def observation(state: HostState, change: Change) -> str:
    """Return the values in force, as a ``live_command`` observes them."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.sysctls, Sysctls)
    live = state.sysctls.live
    return "\n".join(live[key] for key in sorted(keys_of(change.action))).rstrip("\n")


def after_live(sysctls: Sysctls, action: CommandAction) -> Sysctls:
    """Return the settings after a ``live_command``."""
    keys, values = sorted(keys_of(action)), action.after.split("\n")
    values += [""] * (len(keys) - len(values))
    return sysctls.model_copy(
        update={"live": {**sysctls.live, **dict(zip(keys, values, strict=True))}}
    )


def keys_of(action: CommandAction) -> tuple[str, ...]:
    """Return the names that a ``live_command`` is about."""
    words = shlex.split(action.observe.partition("; do ")[0])[3:]
    return tuple(key_of(word) for word in words)


def _write(key: str, value: str) -> str:
    return f"{command(['echo', value])} >{command([path_of(key)])}"
