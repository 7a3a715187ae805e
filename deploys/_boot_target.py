"""What systemd starts at the next boot: a target with the services of the host, or one without. Not a remedy.

Sources: systemd.special(7), bootup(7), systemd(1), KERNEL COMMAND LINE, kernel-command-line(7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from remedy.plan import Workbench
from remedy.probe import File, Kernel, Mention
from remedy.values import Fact, Unknown

FOLDER = "/etc/systemd/system"
DEFAULT = f"{FOLDER}/default.target"
NOWHERE = "/dev/null"
_WITHOUT_SERVICES = frozenset(
    f"{name}.target"
    for name in (
        *("rescue", "emergency", "runlevel1", "sysinit", "basic", "network", "initrd"),
        *("poweroff", "runlevel0", "halt", "reboot", "runlevel6", "kexec", "suspend", "hibernate"),
    )
)
_NEEDED = frozenset(
    f"{name}.target"
    for name in (
        *("sysinit", "basic", "local-fs", "multi-user", "graphical", "sockets", "network"),
        *("network-online", "timers", "paths", "slices", "remote-fs"),
    )
)
"""Targets by which others get their services."""

BOOT_LOADER = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/boot/loader/entries/")
LATER = "/etc/default/grub"
_SINGLE = frozenset(("emergency", "rescue", "-b", "init=/bin/sh", "init=/bin/bash"))
_RECOVERY = frozenset(("single", "s", "S", "1"))
"""What grub.cfg has in an entry of its own, for emergencies."""
_WORTH_KNOWING = ("ipv6.", "systemd.setenv=")
_UNIT = re.compile(r"systemd\.unit=(\S+)")
_MASK = re.compile(r"systemd\.mask=(\S+)")


def note_target(bench: Workbench[Any]) -> None:
    """Name a target in which neither sshd nor any job is started, and targets that are masked."""
    _note_default(bench, bench.host.file(DEFAULT))
    for file in bench.host.files_in(FOLDER):
        name = file.path.rpartition("/")[2] if isinstance(file, File) else ""
        if name in _NEEDED and isinstance(file, File) and file.real_path == NOWHERE:
            bench.blocked(
                f"after the next boot, what {name} starts does not run: it is masked",
                f"{file.path} leads to {NOWHERE}",
                f"Unmask it: systemctl --no-reload unmask {name}",
            )


def _note_default(bench: Workbench[Any], file: Fact[File]) -> None:
    """Name a default target without services; without a file systemd has a default with all of them."""
    if isinstance(file, Unknown):
        leads, is_lost = file.reason, "leads nowhere" in file.reason
        target = ""
    else:
        leads, target = f"{DEFAULT} leads to {file.real_path}", file.real_path.rpartition("/")[2]
        is_lost = file.real_path == NOWHERE or not (file.exists or file.real_path == DEFAULT)
    how = f"in {target}, without its services" if target in _WITHOUT_SERVICES else ""
    if is_lost:
        how = "in rescue mode: its default target is not there"
    if how:
        bench.blocked(
            f"after the next boot, the host comes up {how}",
            leads,
            "Set it back: systemctl --no-reload set-default multi-user.target",
        )


def note_command_line(bench: Workbench[Any], mentions: Sequence[Mention]) -> None:
    """Name words of the boot loader's command lines that the running kernel was not started with.

    Args:
        bench: of the host.
        mentions: lines of files.
    """
    if not isinstance(bench.host.kernel, Kernel):
        return
    now = set(bench.host.kernel.command_line.split())
    sysctls = bench.host.sysctls
    live = {} if isinstance(sysctls, Unknown) else sysctls.live
    noted: set[str] = set()
    for mention in mentions:
        if not mention.path.startswith((*BOOT_LOADER, LATER)) or "recovery" in mention.text:
            continue
        for word in mention.text.replace('"', " ").replace("'", " ").split():
            what = _meaning(word, mention.path, live)
            if not what or word in now or word in noted:
                continue
            noted.add(word)
            is_later = mention.path.startswith(LATER)
            when = "after the next update-grub and boot" if is_later else "after the next boot"
            note = bench.report if word.startswith(_WORTH_KNOWING) or is_later else bench.blocked
            note(
                f"{when}, {what} ({word})",
                f"{mention.path}:{mention.line}",
                "If that is not meant, take the word out of there, and run update-grub.",
            )


def _meaning(word: str, path: str, live: Mapping[str, str]) -> str:
    """Return what a word of a kernel's command line makes of the host; "" for one that does not matter here."""
    if re.match(r"ipv6\.disable(_ipv6)?=1$", word):
        return "the kernel has no IPv6"
    if word in _SINGLE or (word in _RECOVERY and not path.endswith("grub.cfg")):
        return "the host comes up for one user at its console, without its services"
    if match := _UNIT.fullmatch(word):
        return (
            f"the host comes up in {match[1]}, without its services"
            if match[1] in _WITHOUT_SERVICES
            else ""
        )
    if match := _MASK.fullmatch(word):
        return f"{match[1]} is masked, and does not run"
    if word in ("net.ifnames=0", "biosdevname=0"):
        return "interfaces have other names"
    if word.startswith("sysctl."):
        key, _, value = word.removeprefix("sysctl.").partition("=")
        return (
            "a kernel setting is another" if live.get(key.replace("/", "."), value) != value else ""
        )
    if word.startswith("systemd.setenv="):
        return "systemd gives all services another variable"
    return ""
