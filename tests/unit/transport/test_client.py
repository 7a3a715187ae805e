"""What is replaced in pyinfra: nothing reads the terminal, and a ProxyCommand that ends is noticed."""

from __future__ import annotations

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
