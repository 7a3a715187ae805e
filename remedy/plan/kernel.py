"""Kernel settings, for remedies that set them: a file of their own for the next boot, and the values in force.

The files are those of sysctl.d(5); ``remedy.edit.sysctl`` reads and writes them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remedy.edit import sysctl
from remedy.edit.sysctl import key_of, path_of
from remedy.plan.change import Change, CommandAction, Finding, Risk, command
from remedy.plan.workbench import Command, Workbench
from remedy.probe import File, HostState, Sysctls
from remedy.text import listed


@dataclass(frozen=True)
class SettingsFile:
    """A file of settings that a remedy owns whole.

    Args:
        path: in /etc/sysctl.d; the remedy ``reads`` it.
        why: what it is for, one line.
        default: what the kernel starts with where no file says anything; "" where that differs.
        guarded: whether its settings can cut the connection.
    """

    path: str
    why: str
    default: str = ""
    guarded: bool = False

    def lasts(self, bench: Workbench[Any], settings: Mapping[str, str]) -> bool:
        """Return whether these settings will be in force after a reboot, by this file or by others'."""
        file = bench.file(self.path)
        if file.exists:
            return file.content == sysctl.render(settings, self.why)
        sysctls = bench.need(bench.host.sysctls, "the kernel's settings")
        winners = {key: sysctls.winner(key) for key in settings}
        values = {key: line.value if line else self.default for key, line in winners.items()}
        return values == dict(settings)

    def keep(self, bench: Workbench[Any], settings: Mapping[str, str], *, because: Finding) -> bool:
        """Plan that these settings last; return whether that can be done."""
        if self.lasts(bench, settings):
            return True
        return bench.write(
            self.path,
            sysctl.render(settings, self.why),
            f"write {self.path}, for the next boot",
            because=because,
            guarded=self.guarded,
            risk=Risk.MEDIUM if self.guarded else Risk.LOW,
        )

    def note_overruled(self, bench: Workbench[Any], settings: Mapping[str, str]) -> None:
        """Say which of these settings another file decides at boot, although this one has them."""
        for key, line in sysctl.beaten_by(bench.host, self.path, settings):
            bench.blocked(
                f"{line.path} gives {key} another value at boot, after remedy's file",
                f"{line.path}:{line.line}: {key} = {line.value}, needs {settings[key]}",
                f"Remove that line, or give it the value {settings[key]}.",
            )

    def withdraw(self, bench: Workbench[Any], remainder: str) -> None:
        """Plan that the file goes where nothing asks for it; ``remainder``: what stays until the boot."""
        file = bench.host.files.get(self.path)
        if isinstance(file, File) and file.exists:
            finding = bench.drift(f"nothing asks for {self.path} any more")
            title = f"remove {self.path}; {remainder}"
            bench.remove(self.path, title, because=finding, guarded=self.guarded)

    def promise(self, state: HostState, change: Change) -> HostState:
        """Return what the probe finds after the change: what is in force, and what the files say."""
        assert isinstance(state.sysctls, Sysctls)
        if isinstance(change.action, CommandAction):
            after = after_live(state.sysctls, change.action)
        else:
            file = state.file(self.path)
            content = file.content if isinstance(file, File) and file.exists else None
            after = sysctl.persisted_with(state.sysctls, self.path, content)
        return state.model_copy(update={"sysctls": after})


def wrong_now(sysctls: Sysctls, settings: Mapping[str, str]) -> dict[str, str]:
    """Return those settings that are not in force."""
    return {key: value for key, value in settings.items() if sysctls.live[key] != value}


def set_live(bench: Workbench[Any], settings: Mapping[str, str], *, because: Finding) -> None:
    """Plan that the kernel gets those settings that it has not; for settings that cut no connection."""
    sysctls = bench.need(bench.host.sysctls, "the kernel's settings")
    if wrong := wrong_now(sysctls, settings):
        text = ", ".join(f"{key} = {value}" for key, value in wrong.items())
        values = live_command({key: sysctls.live[key] for key in wrong}, wrong)
        bench.run(f"set {text}", because=because, **values)


def live_command(before: Mapping[str, str], after: Mapping[str, str], undo: str = "") -> Command:
    """Return the command that gives the kernel other values, in the order of ``after``.

    Args:
        before: dotted name to the value it has, white space folded.
        after: the same names to the values that they get.
        undo: further sh text, run once the former values are back.
    """
    keys = sorted(after)
    look = command(["cat", "--", *map(path_of, keys)])
    # The kernel parts the numbers of a setting that has several by tabs.
    several = any(len(value.split()) > 1 for value in (*before.values(), *after.values()))
    back = [*(_write(key, before[key]) for key in after), *([undo] if undo else [])]
    words: Command = {
        # Not by `read`: the kernel gives a shell that reads byte by byte the first byte alone.
        "observe": f"{look} | tr -s '\\t' ' '" if several else look,
        "before": "\n".join(before[key] for key in keys).rstrip("\n"),
        "after": "\n".join(after[key] for key in keys).rstrip("\n"),
        "do": " && ".join(_write(key, value) for key, value in after.items()),
        "undo": " && ".join(back),
    }
    if len(after) == 1 and not undo:
        return words
    more = "; then brings back what went with them" if undo else ""
    former = {key: before[key] for key in after}
    return {**words, "does": _in_words(after), "undoes": f"{_in_words(former)}{more}"}


def _in_words(values: Mapping[str, str]) -> str:
    """Return which values are written, each with the settings that get it."""
    keys: dict[str, list[str]] = {}
    for key, value in values.items():
        keys.setdefault(value, []).append(key)
    parts = (f"{value} to {listed(names)}" for value, names in keys.items())
    return f"below /proc/sys: writes {'; '.join(parts)}; ends at the first that is refused"


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
    words = shlex.split(action.observe.partition(" | ")[0])[2:]
    return tuple(key_of(word) for word in words)


def _write(key: str, value: str) -> str:
    return f"{command(['echo', value])} >{command([path_of(key)])}"
