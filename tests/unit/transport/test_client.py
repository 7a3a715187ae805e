"""What is replaced in pyinfra: nothing reads the terminal, and a ProxyCommand that ends is noticed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.unit.transport.process_bench import in_a_process


def test_pyinfra_connects_with_the_client_that_can_be_watched() -> None:
    shown = in_a_process(
        "from pyinfra.connectors import ssh\n"
        "from pyinfra.connectors.sshuserclient import client as c\n"
        "print(ssh.SSHClient is client.Client, c.SSHClient is client.Client, c.ProxyCommand is client.Proxy)\n"
        "import pyinfra; print(pyinfra.is_cli)"  # else it asks for the passphrase of a key
    )
    assert shown == "True True True\nFalse\n"


def test_the_program_of_a_proxy_command_has_no_terminal_and_its_end_is_seen() -> None:
    shown = in_a_process(
        "proxy = client.Proxy(\"sh -c 'cat; ps -o sid= -p $$ >&2; echo $SSH_ASKPASS_REQUIRE >&2'\")\n"
        "proxy.settimeout(20)\n"
        "print(proxy.send(b'to and fro'), proxy.recv(100))\n"
        "proxy.process.stdin.close()\n"
        "print(proxy.recv(100), proxy.process.wait(20), proxy.closed, proxy.last_words())\n"
        "proxy.close()"
    )
    assert shown == "10 b'to and fro'\nb'' 0 True never\n"


def test_a_proxy_command_is_run_by_a_shell_and_how_it_ends_is_said() -> None:
    shown = in_a_process(
        "def end(line):\n"
        "    proxy = client.Proxy(line)\n"
        "    proxy.settimeout(20)\n"
        "    print(proxy.recv(100), proxy.process.wait(20), proxy.last_words())\n"
        "    proxy.close()\n"
        "import os; os.environ['WORD'] = 'through'\n"
        "os.environ['SHELL'] = '/bin/sh'\n"
        "end('echo $WORD 2>/dev/null')\n"
        "end('ls /nowhere 2>/dev/null')\n"
        "end('no-such-program-at-all')\n"
        "proxy = client.Proxy('sleep 1000')\n"
        "print([proxy.last_words()])\n"
        "proxy.close(); proxy.process.wait(20)\n"
        "print([proxy.last_words()])"
    )
    first, second, third, *ours = shown.splitlines()
    assert first.startswith("b'through\\n' 0 exit code 0")
    assert second == "b'' 2 exit code 2, and it printed nothing"
    assert third.startswith("b'' 127 ")
    assert third.endswith("not found")
    assert ours == ["['']", "['']"]


def test_every_key_that_ssh_config_names_is_tried(tmp_path: Path) -> None:
    """ssh goes on to the next where a key is missing, unreadable, encrypted or refused."""
    for name, word in (("first", ""), ("locked", "secret"), ("second", ""), ("third", "")):
        line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", word, "-f", str(tmp_path / name)]
        subprocess.run(line, check=True)
    files = [tmp_path / name for name in ("first", "nowhere", "locked", "second", "third")]
    config = "Host gpu01\n" + "".join(f"  IdentityFile {file}\n" for file in files)
    (tmp_path / "config").write_text(config)
    shown = in_a_process(
        "import paramiko\n"
        "from remedy.transport.watch import CURRENT\n"
        "from types import SimpleNamespace\n"
        "CURRENT.set(SimpleNamespace(enter=lambda stage: None))\n"
        "from pyinfra.connectors.ssh_util import load_key_with_certificate as load\n"
        f"folder = {str(tmp_path)!r}\n"
        "keys = {n: load(key_filename=f'{folder}/{n}') for n in ('first', 'second', 'third')}\n"
        "def name_of(key): return next((n for n, k in keys.items() if k == key), None)\n"
        "tried = []\n"
        "def login(self, user, password, key, files, agent, usual, *more):\n"
        "    tried.append((name_of(key), files, agent))\n"
        "    if name_of(key) != accepted: raise paramiko.AuthenticationException('refused')\n"
        "paramiko.SSHClient._auth = login\n"
        "def log_in(key, files=(), has_key=False):\n"
        "    tried.clear()\n"
        "    user = client.Client()\n"
        "    user._has_key = has_key\n"
        "    user._asked = {'alias': 'gpu01', 'config_file': f'{folder}/config'}\n"
        "    try: user._auth('root', None, key, list(files), True, False, 'more')\n"
        "    except paramiko.AuthenticationException as error: print(error, end=' ')\n"
        "    print([name for name, *_ in tried], tried[-1][1:])\n"
        "accepted = 'third'\n"
        "log_in(keys['first'])\n"
        "log_in(keys['first'], has_key=True)\n"
        "accepted = 'nobody'\n"
        "log_in(keys['first'])\n"
        "log_in(None, [f'{folder}/nowhere', f'{folder}/locked'])\n"
    )
    assert shown.splitlines() == [
        "['first', 'second', 'third'] ([], False)",
        "refused ['first'] ([], True)",
        "refused ['first', 'second', 'third', None] ([], True)",
        f"refused [None] (['{tmp_path}/locked'], True)",
    ]


def test_closing_ends_what_a_proxy_command_started() -> None:
    shown = in_a_process(
        "proxy = client.Proxy(\"sh -c 'sleep 1000 & echo $!; wait'\")\n"
        "proxy.settimeout(20)\n"
        "child = int(proxy.recv(100))\n"
        "proxy.close()\n"
        "print(proxy.process.wait(20))\n"
        "end = time.monotonic() + 20\n"
        "def gone():\n"
        "    try: return open(f'/proc/{child}/stat').read().split()[2] == 'Z'\n"
        "    except FileNotFoundError: return True\n"
        "while not gone() and time.monotonic() < end: time.sleep(0.05)\n"
        "print(gone())"
    )
    assert shown == "-15\nTrue\n"


def test_while_something_is_waited_for_a_connection_is_looked_at_seldom() -> None:
    shown = in_a_process(
        "import threading, paramiko.transport\n"
        "waits = []\n"
        "class Noted(threading.Event):\n"
        "    def wait(self, timeout=None):\n"
        "        waits.append(timeout)\n"
        "        return self.is_set()\n"
        "threading.Event = Noted\n"
        "event = client._patient_threading().Event()\n"
        "print(event.wait(0.1), event.wait(), event.wait(7))\n"
        "event.set()\n"
        "print(event.wait(0.1), waits == [client._SELDOM, None, 7, client._SELDOM])\n"
        "print(paramiko.transport.threading.Event is threading.Event)"
    )
    assert shown == "False False False\nTrue True\nFalse\n"
