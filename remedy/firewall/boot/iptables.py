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
UFW_IPV6_FILES = {name: path.replace(".rules", "6.rules") for name, path in UFW_FILES.items()}
_HOOKS = {"INPUT": "input", "OUTPUT": "output", "FORWARD": "forward"}
_ASSIGNMENT = re.compile(r'(?m)^\s*(\w+)\s*=\s*"?([^"\n]*?)"?\s*$')


def without_counters(text: str) -> str:
    """Return a file of saved rules as the probe has those in force: without comments and counters."""
    lines = (
        re.sub(r"^\[\d+:\d+\] | \[\d+:\d+\]$", "", line.rstrip()) for line in text.splitlines()
    )
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))


def ufw_text(files: Mapping[str, str], prefix: str = "ufw") -> str:
    """Return what iptables-save will print of table ``filter`` once ufw has started.

    Args:
        files: the texts of ``UFW_FILES`` by their short names.
        prefix: of ufw's chains, "ufw" or "ufw6".
    """
    if prefix == "ufw6" and settings_of(files["defaults"]).get("IPV6", "").lower() != "yes":
        return _CLOSED
    return "\n".join(["*filter", *_chains(files, prefix), *_rules(files, prefix), "COMMIT", ""])


_CLOSED = """\
*filter
:INPUT DROP
:FORWARD DROP
:OUTPUT DROP
-A INPUT -i lo -j ACCEPT
-A OUTPUT -o lo -j ACCEPT
COMMIT
"""
"""What ufw does to IPv6 where it is told to leave it alone (ufw-init-functions)."""


def settings_of(defaults: str) -> dict[str, str]:
    """Return the assignments of /etc/default/ufw."""
    return dict(_ASSIGNMENT.findall(defaults))


def _chains(files: Mapping[str, str], prefix: str) -> Iterator[str]:
    defaults = settings_of(files["defaults"])
    for chain, hook in _HOOKS.items():
        policy = defaults.get(f"DEFAULT_{chain}_POLICY", "DROP" if hook != "output" else "ACCEPT")
        yield f":{chain} {'ACCEPT' if policy == 'ACCEPT' else 'DROP'}"
    known = dict.fromkeys(line.split()[0] for line in _filter_lines(files) if line.startswith(":"))
    made = [
        f":{prefix}-{part}-{hook}"
        for hook in _HOOKS.values()
        for part in ("before", "user", "after", "reject")
    ]
    yield from (f"{chain} -" for chain in dict.fromkeys([*made, *known]))


def _rules(files: Mapping[str, str], prefix: str) -> Iterator[str]:
    defaults = settings_of(files["defaults"])
    for chain, hook in _HOOKS.items():
        for part in ("before", "after", "reject"):
            yield f"-A {chain} -j {prefix}-{part}-{hook}"
        if defaults.get(f"DEFAULT_{chain}_POLICY") == "REJECT":
            yield f"-A {prefix}-reject-{hook} -j REJECT"
    for name in ("before", "user", "after"):
        yield from (line for line in _filter_lines({name: files[name]}) if line.startswith("-A "))
        if name == "before":
            yield from (
                f"-A {prefix}-before-{hook} -j {prefix}-user-{hook}" for hook in _HOOKS.values()
            )


def _filter_lines(files: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of table ``filter`` in files for iptables-restore."""
    for name in ("before", "user", "after"):
        inside = False
        for line in without_counters(files.get(name, "")).splitlines():
            if line.startswith("*"):
                inside = line == "*filter"
            elif inside and line.startswith((":", "-A ")):
                yield line
