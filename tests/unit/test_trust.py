"""Reading host keys: one host that is waited for costs the others nothing; no tool gets the terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remedy import trust
from remedy.errors import RemedyError
from remedy.inventory import Node
from remedy.trust import KeyState, scan

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample"
# Prints a key for each address at once, and never ends where one of them is a name that nobody knows.
KEYSCAN = f"""#!/bin/sh
shift 4
for place; do
    case $place in
        slow.example) exec sleep 600;;
        *) echo "$place {KEY}";;
    esac
done
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put tools of a test's own before those of this machine."""
    program(tmp_path / "ssh-keyscan", KEYSCAN)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(trust, "TOOL_SECONDS", 3)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def nodes(tmp_path: Path, *addresses: str) -> list[Node]:
    data = {"ssh_known_hosts_file": str(tmp_path / "known_hosts")}
    return [Node(f"gpu{at}", address, data=data) for at, address in enumerate(addresses)]


def test_a_name_that_is_waited_for_delays_nobody(tools: Path) -> None:
    hosts = scan(nodes(tools, "192.0.2.1", "slow.example", "well.example", "2001:db8::1"))
    assert [host.state for host in hosts] == [
        KeyState.NEW,
        KeyState.SILENT,
        KeyState.NEW,
        KeyState.NEW,
    ]
    assert hosts[0].keys == (KEY,)


def test_keys_that_came_before_the_deadline_count(tools: Path) -> None:
    program(tools / "ssh-keyscan", f'#!/bin/sh\nshift 4; echo "$1 {KEY}"; exec sleep 600\n')
    hosts = scan(nodes(tools, "192.0.2.1", "192.0.2.2"))
    assert [host.state for host in hosts] == [KeyState.NEW, KeyState.SILENT]


def test_many_addresses_are_asked_in_batches(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "BATCH", 2)
    program(tools / "ssh-keyscan", f'{KEYSCAN}echo "$#" >>{tools}/sizes\n')
    hosts = scan(nodes(tools, *(f"192.0.2.{number}" for number in range(1, 6))))
    assert all(host.state is KeyState.NEW for host in hosts)
    assert sorted((tools / "sizes").read_text().split()) == ["1", "2", "2"]


def test_a_configuration_that_never_answers_is_an_error_in_words(tools: Path) -> None:
    program(tools / "ssh", "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(RemedyError, match=r"`ssh -G 192.0.2.1` did not end within 3 s"):
        scan([Node("gpu1", "192.0.2.1")])


def test_a_tool_has_no_terminal_and_nothing_to_read(tools: Path) -> None:
    program(
        tools / "ssh-keyscan",
        f'#!/bin/sh\nread line && echo read; ps -o tty= -p $$; [ "$(ps -o sid= -p $$)" -eq $$ ] '
        f'&& echo "192.0.2.1 {KEY}"\n',
    )
    (host,) = scan(nodes(tools, "192.0.2.1"))
    assert host.state is KeyState.NEW
