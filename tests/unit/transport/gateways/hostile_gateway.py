"""A gateway that means harm: it speaks ClusterShell's protocol as far as it has to, then does what it is told.

python hostile_gateway.py KIND FOLDER RELEASE
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import sys
import time
from pathlib import Path
from typing import Any


class Evil:
    """What makes a file when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder / "called"),)


def say(text: str) -> None:
    """Print to the controller."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def asked(kind: str) -> dict[str, str]:
    """Return the attributes of the next message of a type."""
    for line in sys.stdin:
        if f'type="{kind}"' in line:
            return dict(re.findall(r'(\w+)="([^"]*)"', line))
    raise SystemExit("the controller has gone")


def message(kind: str, content: object = "", **more: object) -> str:
    """Return a message."""
    words = "".join(f' {name}="{value}"' for name, value in more.items())
    return f'<message type="{kind}" msgid="7"{words}>{content}</message>'


def payload(value: object) -> str:
    """Return what a message carries, as ClusterShell writes it."""
    return base64.b64encode(pickle.dumps(value, 4)).decode()


def before_asked(kind: str, release: str) -> None:
    """Begin a channel, or what looks like one."""
    if kind == "chatters":
        say("Welcome to the cluster")
    if kind == "doctype":
        say('<!DOCTYPE c [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>')
    say('<?xml version="1.0" encoding="utf-8"?>' if kind != "doctype" else "")
    say(f'<channel version="{"1.9.1" if kind == "old" else release}">')
    if kind == "early":
        say(message("OUT", payload(b"x"), srcid=1, nodes="h-early"))
    if kind == "silent":
        time.sleep(60)
    if kind == "gives-up":
        say(message("ERR", reason="no room \x1b[31mhere".replace("\x1b", "")))
    say(message("ACK", ack=asked("CFG")["msgid"]))


def harm(kind: str, folder: Path, shell: dict[str, str]) -> None:
    """Do harm, when a command was given."""
    source, host = shell["srcid"], shell["target"]
    out = {"srcid": source, "nodes": host}
    evil = payload(Evil(folder))
    lines: dict[str, list[str]] = {
        "code": [message("OUT", evil, **out)],
        "code-as-error": [message("SER", evil, **out)],
        "code-for-all": [message("SER", evil, srcid=0, nodes=host)],
        "code-as-command": [message("CTL", evil, srcid=source, action="shell", target=host)],
        "code-as-topology": [message("CFG", evil, gateway=host)],
        "text": [message("OUT", payload("text, not bytes"), **out)],
        "no-payload": [message("OUT", **out)],
        "stranger": [message("OUT", payload(b"lie"), srcid=source, nodes="h-good")],
        "end-of-stranger": [message("RET", srcid=source, nodes="h-good", retcode=0)],
        "range": [message("RET", srcid=source, nodes="h[1-99999999999]", retcode=0)],
        "groups": [message("RET", srcid=source, nodes="@all", retcode=0)],
        "other-request": [message("RET", srcid=12345, nodes=host, retcode=0)],
        "no-number": [message("RET", srcid=source, nodes=host, retcode="0x")],
        "unknown": [message("XYZ", **out)],
        "twice": [message("RET", retcode=9, **out), message("RET", retcode=8, **out)],
    }
    for line in lines.get(kind, ()):
        say(line)
    if kind == "long-line":
        sys.stdout.write("a" * (3 << 20))
        sys.stdout.flush()
    if kind == "long-message":
        sys.stdout.write(message("OUT", "", **out).removesuffix("</message>"))
        for _ in range(450):
            say("A" * 65_000)
    if kind == "many-messages":
        text = "\n".join([message("OUT", payload(b""), **out)] * 1_000)
        for _ in range(40):
            say(text)
    if kind == "quits":
        raise SystemExit(0)
    if kind == "dies":
        raise SystemExit("out of memory")
    time.sleep(60)


def main() -> None:
    """Do what the command line says."""
    kind, folder, release = sys.argv[1:]
    before_asked(kind, release)
    shell = asked("CTL")
    if kind == "swallows":
        time.sleep(60)
    harm(kind, Path(folder), shell)


if __name__ == "__main__":
    main()
