"""What a gateway is asked about host keys: the script as it runs, and answers that no gateway should give."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from remedy.transport.gateways.asking import (
    KeyLines,
    Login,
    Seen,
    parse,
    render_read,
    render_record,
)
from remedy.trust import KeyState, ShownKey

NONCE = "5" * 32
LOGIN = Login("root", 2222, 7)
BLOB = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + b"k" * 32
KEY = ShownKey(BLOB)

# ssh as far as it matters here: who is known, what is printed, and the key that accept-new writes.
SSH = """\
#!/bin/sh
for word; do
  case $word in
    -oUserKnownHostsFile=*) file=${{word#*=}} ;;
    -oHostKeyAlgorithms=*) family=${{word#*=}} ;;
    -G) echo "userknownhostsfile {known} /dev/null"; exit ;;
  esac
done
while [ "$1" != -- ]; do shift; done
host=$2
echo "$host" >>{folder}/calls
refuse() {{ echo "$1" >&2; exit 255; }}
case $host in dead) refuse "ssh: connect to host dead port 2222: Connection refused" ;; esac
if [ -n "$file" ]; then
  [ "$family" = ssh-ed25519 ] || refuse "Unable to negotiate: no matching host key type found"
  echo "[$host]:2222 {key}" >"$file"
  [ "$host" != forged ] || refuse "ssh_dispatch_run_fatal: incorrect signature"
  refuse "root@$host: Permission denied (publickey)."
fi
grep -q "^\\[$host\\]:2222 {key}" {known} && refuse "root@$host: Permission denied (publickey)."
grep -q "^\\[$host\\]:2222 " {known} && {{
  echo "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @" >&2
  refuse "Host key verification failed."
}}
case $host in withdrawn) echo "The ED25519 host key for withdrawn is marked as revoked." >&2 ;; esac
echo "No ED25519 host key is known for [$host]:2222 and you have requested strict checking." >&2
refuse "Host key verification failed."
"""


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """The file of known hosts of the machine that the script runs on, with its ssh in the path."""
    file = tmp_path / "home" / "known_hosts"
    file.parent.mkdir()
    file.write_text(f"[old]:2222 {KEY.line}\n[other]:2222 ssh-ed25519 AAAA")
    program = tmp_path / "ssh"
    program.write_text(SSH.format(known=file, folder=tmp_path, key=KEY.line))
    program.chmod(0o755)
    return file


def run(folder: Path, script: str) -> str:
    """Run a script as a gateway does, and return what it prints."""
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-s"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path, "TMPDIR": str(folder)},
    )
    return done.stdout


def test_the_gateways_ssh_says_what_it_knows_and_shows_the_keys_that_were_proved(
    known: Path,
) -> None:
    hosts = ["old", "fresh", "other", "dead", "withdrawn", "forged"]
    seen = parse(run(known.parents[1], render_read(hosts, LOGIN, NONCE)), hosts, NONCE)
    assert seen is not None
    states = {host: answer.state for host, answer in seen.items()}
    assert states == {
        "old": KeyState.KNOWN,
        "fresh": KeyState.NEW,
        "other": KeyState.CHANGED,
        "dead": KeyState.SILENT,
        "withdrawn": KeyState.REVOKED,
        "forged": KeyState.NEW,
    }
    assert seen["fresh"].lines == (("[fresh]:2222", KEY),)
    assert seen["other"].lines == (("[other]:2222", KEY),)
    # Whoever cannot sign has proved nothing, though its key came.
    assert seen["forged"].lines == seen["old"].lines == ()
    assert "Connection refused" in seen["dead"].message
    assert not [path for path in known.parents[1].iterdir() if path.name.startswith("tmp.")]


def test_what_is_recorded_is_what_the_gateways_ssh_believes_then(known: Path) -> None:
    lines = (("[fresh]:2222", KEY),)
    entries = [
        KeyLines("fresh", lines),
        KeyLines("other", (("[other]:2222", KEY),), "[other]:2222"),
        KeyLines("dead", (("[dead]:2222", KEY),)),
    ]
    text = run(known.parents[1], render_record(entries, LOGIN, NONCE))
    seen = parse(text, [entry.address for entry in entries], NONCE)
    assert seen is not None
    assert seen["fresh"].state is seen["other"].state is KeyState.KNOWN
    assert seen["fresh"].file == str(known)
    assert seen["dead"].state is KeyState.SILENT
    assert known.read_text() == "".join(
        f"[{host}]:2222 {KEY.line}\n" for host in ("old", "fresh", "other", "dead")
    )


def test_a_gateway_whose_file_cannot_be_written_says_so(known: Path) -> None:
    known.unlink()
    known.mkdir()
    entries = [KeyLines("fresh", (("[fresh]:2222", KEY),))]
    seen = parse(run(known.parents[1], render_record(entries, LOGIN, NONCE)), ["fresh"], NONCE)
    assert seen is not None
    assert seen["fresh"].state is KeyState.SILENT
    assert str(known) in seen["fresh"].message


def row(number: str, kind: str, text: str, code: str = "0") -> str:
    """Return a line as a gateway prints it."""
    return f"{NONCE} {number} {kind} {code} {base64.b64encode(text.encode()).decode()}\n"


@pytest.mark.parametrize(
    "line",
    [
        f"* {KEY.line}",
        f"a,b {KEY.line}",
        f"a {KEY.line} # more",
        f"@cert-authority a {KEY.line}",
        f"a ssh-rsa {KEY.line.split()[1]}",
        "a ssh-ed25519 AAAA",
        f"a;reboot {KEY.line}",
    ],
)
def test_a_line_that_is_no_plain_key_of_one_host_is_not_recorded(line: str) -> None:
    text = row("1", "state", "Host key verification failed.", "255") + row("1", "key", line)
    seen = parse(f"{text}{NONCE} over\n", ["a"], NONCE)
    assert seen == {"a": Seen(KeyState.NEW, "Host key verification failed.")}


def test_of_a_gateway_only_whole_answers_about_what_was_asked_count() -> None:
    state = row("1", "state", "root@a: Permission denied (publickey).", "255")
    assert parse(state, ["a"], NONCE) is None
    assert parse(f"{state}{'6' * 32} over\n", ["a"], NONCE) is None
    strange = row("9" * 5000, "state", "") + row("7", "state", "") + f"{NONCE} 1 state 0 ?\n"
    seen = parse(f"motd\n{state}{strange}{NONCE} over\n", ["a", "b"], NONCE)
    assert seen is not None
    assert {host: answer.state for host, answer in seen.items()} == {"a": KeyState.KNOWN}
