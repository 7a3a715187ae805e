"""ssh that goes nowhere: a command for any host runs on this machine, or what the test has put in its place.

Gateways are ClusterShell's own then, as processes of this machine, and reach their hosts by the same ssh.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOSTILE = Path(__file__).with_name("hostile_gateway.py")
_SSH = """\
#!/bin/sh
for word; do host=$command; command=$word; done
echo "$host" >>{folder}/calls
FROM=$HERE; HERE=$host; export FROM HERE
[ ! -e {folder}/$host ] || exec sh {folder}/$host "$command"
exec sh -c "$command"
"""


def install(folder: Path) -> dict[str, str]:
    """Put the program into a folder, and return the environment in which it is ssh."""
    program = folder / "ssh"
    program.write_text(_SSH.format(folder=folder))
    program.chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def put(folder: Path, host: str, text: str) -> None:
    """Have a host, or a gateway, run a text of the shell in place of any command, which is its $1."""
    (folder / host).write_text(text)


def calls(folder: Path) -> list[str]:
    """Return which hosts and gateways were connected to, in order."""
    return (folder / "calls").read_text().split()
