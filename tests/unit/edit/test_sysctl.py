"""Files of kernel settings: what is written, and what beats it at boot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.edit.sysctl import (
    beaten_by,
    persisted_with,
    render,
)
from remedy.probe import HostState, Sysctls, SysctlSetting
from remedy.probe.sysctl import UFW_FILE
from remedy.values import Unknown
from tests.unit.build import host_state

OURS = "/etc/sysctl.d/60-remedy.conf"
KEY = "net.ipv4.ip_local_port_range"
DOTTED = "net.ipv6.conf.eth0/100.disable_ipv6"
"""The interface eth0.100, as sysctl(8) writes it."""


def sysctls(*settings: tuple[str, str, str], live: Mapping[str, str] | None = None) -> Sysctls:
    persisted = tuple(
        SysctlSetting(path=p, key=k, value=v, line=n) for n, (p, k, v) in enumerate(settings, 1)
    )
    return Sysctls(live=live or {}, persisted=persisted, unread=())


def host(settings: Sysctls | Unknown) -> HostState:
    return host_state("a", "10.0.0.1").model_copy(update={"sysctls": settings})


def test_a_file_says_what_it_is_for_and_sets_one_key_a_line() -> None:
    text = render({"a.b": "1", KEY: "2 3"}, "ports").decode().splitlines()
    assert text[0].startswith("#")
    assert "ports" in text[0]
    assert text[1:] == ["a.b = 1", f"{KEY} = 2 3"]


def test_a_key_with_a_dot_in_an_interface_is_written_with_slashes() -> None:
    assert b"net/ipv6/conf/eth0.100/disable_ipv6 = 1\n" in render({DOTTED: "1"}, "why")


def paths(found: Sysctls) -> list[str]:
    return [setting.path for setting in found.persisted]


def test_a_file_takes_its_place_by_its_name_whatever_its_folder() -> None:
    before = sysctls(
        ("/usr/lib/sysctl.d/50-default.conf", "a", "1"),
        (OURS, "gone", "1"),
        ("/run/sysctl.d/60-z.conf", "a", "2"),
        (UFW_FILE, "a", "3"),
    )
    after = persisted_with(before, OURS, b"b = 4\nc = 5\n")
    assert paths(after) == [
        "/usr/lib/sysctl.d/50-default.conf", OURS, OURS, "/run/sysctl.d/60-z.conf", UFW_FILE,
    ]  # fmt: skip
    assert [s.key for s in after.persisted if s.path == OURS] == ["b", "c"]
    assert OURS not in paths(persisted_with(after, OURS, None))
    last = persisted_with(sysctls(("/etc/sysctl.d/10-a.conf", "a", "1")), OURS, b"b=4\n")
    assert paths(last) == ["/etc/sysctl.d/10-a.conf", OURS]


def test_ufw_applies_its_file_after_all_others() -> None:
    after = persisted_with(sysctls((UFW_FILE, "a", "1")), "/etc/sysctl.d/zz.conf", b"a = 2\n")
    assert paths(after) == ["/etc/sysctl.d/zz.conf", UFW_FILE]


@pytest.mark.parametrize(
    ("path", "value", "beaten"),
    [
        ("/etc/sysctl.d/99-site.conf", "1", True),
        ("/etc/sysctl.d/99-site.conf", "2", False),
        ("/etc/sysctl.d/10-site.conf", "1", False),
        (UFW_FILE, "1", True),
    ],
)
def test_a_later_file_with_another_value_beats_ours(path: str, value: str, beaten: bool) -> None:
    found = beaten_by(host(sysctls((path, "a.b", value))), OURS, {"a.b": "2", "c.d": "3"})
    assert [(key, line.path, line.value) for key, line in found] == (
        [("a.b", path, value)] if beaten else []
    )


def test_what_is_not_known_beats_nothing() -> None:
    blind = host(Unknown(reason="no"))
    assert beaten_by(blind, OURS, {"a.b": "2"}) == ()
