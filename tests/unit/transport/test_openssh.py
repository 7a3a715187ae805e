"""ssh_config with Match and Include, as ``ssh -G`` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

import remedy.transport.connections  # noqa: F401 - pyinfra's patches come first
from remedy.transport import openssh

CONFIG = """
Include {folder}/one {folder}/two {folder}/one
Host gpu*
  ProxyJump jump@bastion:2200
Host bastion
  User gate
Match originalhost gpu01 user ops
  IdentityFile ~/.ssh/%h-key
Match localuser nobody-here
  Port 7
Match final
  ConnectTimeout 7
"""


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "one").write_text("Host gpu01\n  HostName 10.0.0.1\n")
    (tmp_path / "two").write_text("Host gpu01\n  Port 2222\n")
    (tmp_path / "config").write_text(CONFIG.format(folder=tmp_path))
    openssh.forget()
    yield tmp_path / "config"
    openssh.forget()


def test_lists_of_files_and_all_criteria_of_match_count(config: Path) -> None:
    token = openssh.USER.set(("gpu01", "ops"))
    values = openssh.ssh_config(str(config)).lookup("gpu01")
    openssh.USER.reset(token)
    assert values["hostname"] == "10.0.0.1"
    assert values["port"] == "2222"
    assert values["proxyjump"] == "jump@bastion:2200"
    assert values["identityfile"] == ["~/.ssh/10.0.0.1-key"]
    assert values["connecttimeout"] == "7"


def test_what_would_hold_anyway_is_left_out(config: Path) -> None:
    values = openssh.ssh_config(str(config)).lookup("other")
    assert values["hostname"] == "other"
    assert not values.keys() & {"port", "user", "identityfile", "userknownhostsfile", "proxyjump"}


def test_the_user_of_a_host_is_none_of_its_jump_host(config: Path) -> None:
    token = openssh.USER.set(("gpu01", "ops"))
    assert openssh.ssh_config(str(config)).lookup("bastion")["user"] == "gate"
    openssh.USER.reset(token)


def test_a_host_is_no_option_of_ssh(config: Path) -> None:
    with pytest.raises(paramiko.SSHException, match="ssh cannot read"):
        openssh.ssh_config(str(config)).lookup("-oProxyCommand=touch /tmp/never")


def test_a_file_that_cannot_be_read_is_an_error(config: Path) -> None:
    config.write_text("Match all\n  NoSuchSetting 1\n")
    with pytest.raises(paramiko.SSHException, match=r"(?i)nosuchsetting"):
        openssh.ssh_config(str(config)).lookup("gpu01")


def test_a_program_of_match_that_does_not_end_is_given_up(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openssh, "_SECONDS", 1)
    config.write_text('Match exec "sleep 5"\n  Port 7\n')
    with pytest.raises(paramiko.SSHException, match="more than 1 s"):
        openssh.ssh_config(str(config)).lookup("gpu01")


def test_plain_files_cost_no_process(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("Host gpu01\n  Port 2222\n")
    monkeypatch.setattr(openssh, "_effective", None)
    assert openssh.ssh_config(str(config)).lookup("gpu01")["port"] == "2222"
    assert openssh.ssh_config(str(config.with_name("none"))) is None


PLAIN = """
Host head
  ProxyJump none
  IdentityFile none
Host gpu01
  ProxyJump head
  IdentityFile /keys/one
Host gpu02
  ProxyCommand nc %h %p
Host gpu03
  {first}
Host *
  ProxyJump gate
  IdentityFile none
  IdentityFile /keys/all
"""


@pytest.mark.parametrize("first", ["Port 22", "ProxyCommand none", "ProxyCommand=NONE"])
@pytest.mark.parametrize("more", ["", "Match all\n"], ids=["plain", "match"])
def test_none_is_no_jump_host_and_the_first_way_counts(config: Path, first: str, more: str) -> None:
    config.write_text(PLAIN.format(first=first) + more)
    read = openssh.ssh_config(str(config)).lookup
    ways = {
        name: [read(name).get(key) for key in ("proxyjump", "proxycommand")]
        for name in ("head", "gpu01", "gpu02", "gpu03", "other")
    }
    assert ways == {
        "head": [None, None],
        "gpu01": ["head", None],
        "gpu02": [None, "nc gpu02 22"],
        "gpu03": ["gate" if first == "Port 22" else None, None],
        "other": ["gate", None],
    }
    assert read("gpu01")["identityfile"][0] == "/keys/one"
    assert openssh.identities("other", str(config))[-1] == "/keys/all"
