"""Users who are not root: with sudo, with a password for it, without it; the password shows up nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remedy.lab.rootfs import GUARDED_PASSWORD
from tests.lab.conftest import Cluster
from tests.lab.processes import DECOY, start_looking, stop_looking
from tests.lab.site import HostNames, RemedyOutput, Site
from tests.lab.terminal import on_a_terminal

pytestmark = pytest.mark.lab

# Typed for all hosts, of which one has a password of its own.
TYPED = "typed-for-the-others"
# A login shell that keeps what it is sent, before the command reads it.
RECORDER = """#!/bin/sh
tee -a /var/tmp/sent | /bin/sh "$@"
"""
# gpu02 asks for a password; gpu04 has no sudo at all.
USERS = {"gpu01": "trainer", "gpu02": "guarded", "gpu03": "nosudo", "gpu04": "trainer"}


@dataclass(frozen=True)
class Sudo:
    """What was said and what was there: without a password, with it, and with a wrong one."""

    site: Site
    fresh: Mapping[str, HostNames]
    without: RemedyOutput
    refused: Mapping[str, HostNames]
    wrong: RemedyOutput
    typed: RemedyOutput
    names: HostNames
    back: RemedyOutput
    undone: HostNames
    given: RemedyOutput
    seen: bytes
    places: list[str]
    sent: Mapping[str, bytes]


@pytest.fixture(scope="module")
def sudo(module_cluster: Cluster) -> Sudo:
    site = Site(module_cluster)
    module_cluster.fault("gpu04", "no-sudo")
    site.edit_inventory({host: {"ssh_user": user} for host, user in USERS.items()})
    told: dict[str, Any] = {"site": site, "fresh": site.all_names()}
    told["without"] = site.remedy("apply", "--yes", "--no-verify", "--json")
    told["refused"] = site.all_names()
    start_looking(module_cluster, "gpu02")
    site.edit_inventory({"gpu02": {"_sudo_password": "not-this-one"}})
    told["wrong"] = site.remedy("apply", "--yes", "--no-verify", "--limit", "gpu02", "--json")
    site.edit_inventory({"gpu02": {"_sudo_password": ""}})
    words = ["-K", "-v", "--no-verify", "--limit", "gpu02"]
    told["typed"] = on_a_terminal(
        site.command("apply", *words),
        [("sudo password:", GUARDED_PASSWORD), ("Change 1 host?", "y")],
    )
    told["names"] = site.names("gpu02")
    site.edit_inventory({"gpu02": {"_sudo_password": GUARDED_PASSWORD}})
    run = sorted((site.folder / ".remedy" / "runs").iterdir())[-1].name
    told["back"] = site.remedy("rollback", run, "--yes", "-v", "--limit", "gpu02")
    told["undone"] = site.names("gpu02")
    told["given"] = site.remedy("apply", "--yes", "-v", "--no-verify", "--limit", "gpu02")
    told["seen"] = stop_looking(module_cluster, "gpu02")
    told["places"] = _places(module_cluster, "gpu02", GUARDED_PASSWORD)
    told["sent"] = {host: _sent(site, host) for host in ("gpu01", "gpu02")}
    return Sudo(**told)


def _sent(site: Site, host: str) -> bytes:
    """Have a password typed for all hosts; return what one of them was sent."""
    lab = site.cluster.host(host)
    lab.write("/usr/local/bin/recorder", RECORDER.encode())
    lab.must(f"chmod 755 /usr/local/bin/recorder; usermod -s /usr/local/bin/recorder {USERS[host]}")
    words = site.command("plan", "-K", "--limit", host)
    answer = on_a_terminal(words, [("sudo password:", TYPED)])
    lab.must(f"usermod -s /bin/sh {USERS[host]}")
    sent = lab.must("cat /var/tmp/sent; rm /var/tmp/sent").encode("utf-8", "replace")
    assert "failed" not in answer.stdout, answer.stdout
    return sent


def _places(cluster: Cluster, host: str, secret: str) -> list[str]:
    """Return where on a host a secret is kept, a decoy among it that shows that the search works."""
    cluster.host(host).write("/var/tmp/a-decoy", secret.encode())
    look = (
        f"find /etc /home /root /run /tmp /var -xdev -type f -exec grep -ls -e {secret} {{}} +;"
        f" journalctl | grep -e {secret}"
    )
    return sorted(cluster.run(host, look).stdout.splitlines())


def test_a_user_with_sudo_does_everything(sudo: Sudo) -> None:
    assert sudo.without.document["hosts"]["gpu01"]["status"] == "changed"
    sudo.site.assert_right("gpu01")
    receipt = "stat -c %U:%a /var/lib/remedy"
    assert sudo.site.cluster.run("gpu01", receipt).stdout.strip() == "root:700"


@pytest.mark.parametrize(
    ("host", "said", "next_step"),
    [
        ("gpu02", "sudo asks for a password", "--ask-sudo-password"),
        ("gpu03", "sudo asks for a password", "allow the user NOPASSWD"),
        ("gpu04", "the ssh user is not root, and the host has no sudo", "Install sudo"),
    ],
)
def test_what_needs_root_is_refused_in_words(
    sudo: Sudo, host: str, said: str, next_step: str
) -> None:
    assert sudo.without.code == 1
    told = sudo.without.document["hosts"][host]
    assert told["status"] == "failed"
    details = [told["error"] or "", *(change["detail"] for change in told["changes"])]
    assert any(host in text and said in text for text in details), told
    assert next_step in (told["next_step"] or ""), told
    assert sudo.refused[host] == sudo.fresh[host]


def test_a_wrong_password_is_told(sudo: Sudo) -> None:
    assert sudo.wrong.code == 1
    told = sudo.wrong.document["hosts"]["gpu02"]
    details = [told["error"] or "", *(change["detail"] for change in told["changes"])]
    assert any("sudo did not accept the password" in text for text in details), told


def test_a_password_is_asked_for_once_and_the_changes_before_they_are_made(sudo: Sudo) -> None:
    shown = sudo.typed.stdout
    assert sudo.typed.code == 0, shown
    assert shown.count("sudo password:") == 1
    assert shown.index("changes on 1 host") < shown.index("Change 1 host?")
    assert re.search(r"^changed +gpu02$", shown, re.M)
    assert (sudo.names.running, sudo.names.static) == ("gpu02", b"gpu02\n")


def test_a_password_of_the_inventory_does_it_too(sudo: Sudo) -> None:
    assert sudo.back.code == 0, sudo.back.text
    assert sudo.undone == sudo.fresh["gpu02"]
    assert sudo.given.code == 0, sudo.given.text
    sudo.site.assert_right("gpu02")


def test_a_host_is_sent_its_own_password_and_only_where_it_asks(sudo: Sudo) -> None:
    assert not [word for word in (TYPED, GUARDED_PASSWORD) if word.encode() in sudo.sent["gpu01"]]
    assert sudo.sent["gpu02"].startswith(f"{GUARDED_PASSWORD}\n".encode())
    assert TYPED.encode() not in sudo.sent["gpu02"]
    assert len(sudo.sent["gpu01"]) > 1000


def test_the_password_is_nowhere(sudo: Sudo) -> None:
    # That the looking works at all: it has seen a decoy, and remedy at work.
    assert DECOY.encode() in sudo.seen
    assert b"sh\0-s\0" in sudo.seen
    assert GUARDED_PASSWORD.encode() not in sudo.seen
    assert sudo.places == ["/var/tmp/a-decoy"]
    for answer in (sudo.without, sudo.wrong, sudo.typed, sudo.back, sudo.given):
        assert GUARDED_PASSWORD not in answer.text
    for path in _files(sudo.site.folder / ".remedy"):
        assert GUARDED_PASSWORD not in path.read_text(), path


def _files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert found
    return found
