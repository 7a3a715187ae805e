"""What sshd makes of its files at its next reload or boot."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import LoginSession, Sshd
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.boot_bench import found, host

USUAL = {
    "listenaddress": ("[::]:22", "0.0.0.0:22"),
    "permitrootlogin": ("prohibit-password",),
    "pubkeyauthentication": ("yes",),
    "authenticationmethods": ("any",),
    "authorizedkeysfile": (".ssh/authorized_keys", ".ssh/authorized_keys2"),
    "forcecommand": ("none",),
    "chrootdirectory": ("none",),
    "maxsessions": ("10",),
}


def titles(*, present: tuple[str, ...] = (), **given: Any) -> list[str]:
    """Return what is said of a login of root's with these options and facts."""
    facts = {key: given.pop(key) for key in tuple(given) if key in Sshd.model_fields}
    sshd = Sshd(
        **{
            "options": {**USUAL, **given},
            "user": "root",
            "client": "192.0.2.9",
            "address": "10.0.0.1",
            "port": 22,
            "keys": ("/root/.ssh/authorized_keys",),
            **facts,
        }
    )
    state = host(present=present).model_copy(update={"sshd": sshd})
    findings = found(state)
    assert all(finding.label == "boot-differs" for finding in findings)
    return [finding.title.partition(", ")[2] for finding in findings]


def test_a_configuration_that_lets_the_same_login_in_is_fine() -> None:
    assert titles() == []
    assert found(host()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"listenaddress": ("0.0.0.0:2222",)}, "it does not listen on 10.0.0.1:22, by which"),
        ({"listenaddress": ("192.0.2.1:22",)}, "it does not listen on"),
        ({"listenaddress": ("[::]:22",)}, "it does not listen on"),
        ({"listenaddress": ("10.0.0.1:22",)}, None),
        ({"permitrootlogin": ("no",)}, "it does not let root in"),
        ({"permitrootlogin": ("forced-commands-only",)}, "it does not let root in"),
        ({"permitrootlogin": ("without-password",)}, None),
        ({"permitrootlogin": ("no",), "user": "me"}, None),
        ({"allowusers": ("operator",)}, "it lets in others, and not root"),
        ({"allowusers": ("operator", "ro*")}, None),
        ({"allowusers": ("root@192.0.2.0/24",)}, None),
        ({"allowusers": ("root@198.51.100.*",)}, "it lets in others, and not root"),
        ({"denyusers": ("root",)}, "it keeps root out"),
        ({"denyusers": ("root@198.51.100.1",)}, None),
        ({"allowgroups": ("wheel",)}, "it asks for the groups of root"),
        ({"denygroups": ("wheel",)}, "it asks for the groups of root"),
        ({"pubkeyauthentication": ("no",)}, "it takes no keys"),
        ({"keys": ()}, "it finds no keys of root"),
        ({"keys": (), "authorizedkeyscommand": ("/usr/bin/sss_ssh_authorizedkeys",)}, None),
        ({"keys": (), "trustedusercakeys": ("/etc/ssh/ca.pub",)}, None),
        ({"authenticationmethods": ("publickey,password",)}, "it asks for more than a key"),
        ({"authenticationmethods": ("password", "publickey")}, None),
        ({"forcecommand": ("/usr/bin/menu",)}, "it runs a command of its own"),
        ({"chrootdirectory": ("/srv",)}, "it keeps sessions in a directory"),
        ({"maxsessions": ("0",)}, "it opens no session"),
        ({"maxsessions": ("0",), "port": 0}, None),  # not by ssh: nothing is known of the login
    ],
)
def test_what_closes_the_way_by_which_this_login_came(
    options: dict[str, Any], words: str | None
) -> None:
    said = titles(**options)
    assert [words in title for title in said if words] == ([True] if words else [])
    assert bool(said) is bool(words)


def test_a_socket_listens_in_the_place_of_sshd() -> None:
    socket = ("/etc/systemd/system/sockets.target.wants/ssh.socket",)
    assert titles(listenaddress=("0.0.0.0:2222",), present=socket) == []


def test_an_error_is_all_that_is_said() -> None:
    error = "/etc/ssh/sshd_config.d/a.conf: line 1: Bad configuration option: Bogus"
    assert titles(errors=(error,), options={}) == [f"sshd does not start: {error}"]


def test_what_is_not_known_is_not_fine() -> None:
    state = host().model_copy(update={"sshd": Unknown(reason="asking needs root")})
    (finding,) = found(state)
    assert (finding.kind.value, finding.evidence) == ("unknown", ("asking needs root",))


def test_a_file_that_keeps_the_unit_off() -> None:
    (finding,) = found(host().model_copy(update={"sshd": Sshd(refuses="/etc/ssh/no")}))
    assert (finding.kind.value, finding.title) == (
        "blocked",
        "after the next boot, sshd is not started: /etc/ssh/no is there",
    )


def test_a_line_is_accepted_by_its_text() -> None:
    sshd = Sshd(
        options={**USUAL, "maxsessions": ("0",)}, user="root", client="c", address="a", port=22
    )
    state = host().model_copy(
        update={"sshd": sshd, "session": record(LoginSession, present=frozenset())}
    )
    texts = [finding.fix.rpartition('remedy.yaml: "')[2].rstrip('"') for finding in found(state)]
    assert "sshd: maxsessions 0" in texts
    assert found(state, accept=tuple(texts)) == []
