"""An interpreter whose ``torch`` is the stub of ``tests/stub_torch``: ranks that start in no time.

Everything else of a verification is what it always is: the script, the agent, the program of a rank with its
store, alarm and roll call, and the verdict.
"""

from __future__ import annotations

import base64
import io
import shlex
import sys
import tarfile
from pathlib import Path

from remedy.lab.host import Host

FOLDER = Path(__file__).parent / "stub_torch"
ON_HOSTS = "/opt/stub-torch"


def program(python: str, folder: str) -> str:
    """Return the text of a program that is ``python`` with the stub in ``folder``."""
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(folder)} exec {shlex.quote(python)} "$@"\n'


def interpreter(folder: Path) -> str:
    """Write a program into a folder that is this Python, with the stub; return its path."""
    path = folder / "python"
    path.write_text(program(sys.executable, str(FOLDER)), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def install(host: Host) -> str:
    """Write the stub into a host of the lab; return the path of an interpreter that has it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(FOLDER, arcname=".", filter=lambda f: None if "__pycache__" in f.name else f)
    host.must(
        f"mkdir -p {ON_HOSTS} && base64 -d | tar -C {ON_HOSTS} -xz",
        stdin=base64.b64encode(packed.getvalue()).decode("ascii"),
    )
    path = f"{ON_HOSTS}/python"
    host.must(f"cat >{path} && chmod 755 {path}", stdin=program("/usr/bin/python3", ON_HOSTS))
    return path
