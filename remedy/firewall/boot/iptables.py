"""What iptables and ufw load at boot, as the text of iptables-save(8) that it comes to.

ufw has no such text: it loads before.rules, user.rules and after.rules into chains which it makes itself (see
/lib/ufw/ufw-init-functions, ufw-framework(8)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

UFW_FILES = {
    "before": "/etc/ufw/before.rules",
    "user": "/etc/ufw/user.rules",
    "after": "/etc/ufw/after.rules",
    "defaults": "/etc/default/ufw",
}
_HOOKS = {"INPUT": "input", "OUTPUT": "output", "FORWARD": "forward"}
_ASSIGNMENT = re.compile(r'(?m)^\s*(\w+)\s*=\s*"?([^"\n]*?)"?\s*$')


def without_counters(text: str) -> str:
    """Return a file of saved rules as the probe has those in force: without comments and counters."""
    lines = (
        re.sub(r"^\[\d+:\d+\] | \[\d+:\d+\]$", "", line.rstrip()) for line in text.splitlines()
    )
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))


def ufw_text(files: Mapping[str, str]) -> str:
    """Return what iptables-save will print of table ``filter`` once ufw has started.

    Args:
        files: the texts of ``UFW_FILES`` by their short names.
    """
    return "\n".join(["*filter", *_chains(files), *_rules(files), "COMMIT", ""])


def _chains(files: Mapping[str, str]) -> Iterator[str]:
    defaults = dict(_ASSIGNMENT.findall(files["defaults"]))
    for chain, hook in _HOOKS.items():
        policy = defaults.get(f"DEFAULT_{chain}_POLICY", "DROP" if hook != "output" else "ACCEPT")
        yield f":{chain} {'ACCEPT' if policy == 'ACCEPT' else 'DROP'}"
    known = dict.fromkeys(line.split()[0] for line in _filter_lines(files) if line.startswith(":"))
    made = [
        f":ufw-{part}-{hook}"
        for hook in _HOOKS.values()
        for part in ("before", "user", "after", "reject")
    ]
    yield from (f"{chain} -" for chain in dict.fromkeys([*made, *known]))


def _rules(files: Mapping[str, str]) -> Iterator[str]:
    defaults = dict(_ASSIGNMENT.findall(files["defaults"]))
    for chain, hook in _HOOKS.items():
        for part in ("before", "after", "reject"):
            yield f"-A {chain} -j ufw-{part}-{hook}"
        if defaults.get(f"DEFAULT_{chain}_POLICY") == "REJECT":
            yield f"-A ufw-reject-{hook} -j REJECT"
    for name in ("before", "user", "after"):
        yield from (line for line in _filter_lines({name: files[name]}) if line.startswith("-A "))
        if name == "before":
            yield from (f"-A ufw-before-{hook} -j ufw-user-{hook}" for hook in _HOOKS.values())


def _filter_lines(files: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of table ``filter`` in files for iptables-restore."""
    for name in ("before", "user", "after"):
        inside = False
        for line in without_counters(files.get(name, "")).splitlines():
            if line.startswith("*"):
                inside = line == "*filter"
            elif inside and line.startswith((":", "-A ")):
                yield line
