"""Running the probe's script here, with tools in front of this machine's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remedy.probe import HostState, ProbeRequest, parse_probe, render_probe


def run(
    request: ProbeRequest, shell: str = "sh", *, text: str = "", **environment: str
) -> tuple[HostState, str]:
    """Run the probe here.

    Args:
        request: what is asked.
        shell: which shell runs it.
        text: a script to run in place of the rendered one.
        environment: variables to set.

    Returns:
        The state, and what was printed.
    """
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    done = subprocess.run(
        command,
        input=text or render_probe(request),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.isascii()
    return parse_probe("here", done.stdout, request), done.stdout


def run_each(
    request: ProbeRequest, shells: Iterable[str], *, text: str = "", **environment: str
) -> dict[str, HostState]:
    """Run the probe in each of the shells that are here, side by side: for a probe that waits."""
    here = [shell for shell in shells if shutil.which(shell)]
    assert here

    def state(shell: str) -> HostState:
        return run(request, shell, text=text, **environment)[0]

    with ThreadPoolExecutor() as pool:
        return dict(zip(here, pool.map(state, here), strict=True))


def tool(folder: Path, name: str, text: str) -> str:
    """Put a program in front of all others; return the PATH with it."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def with_driver(request: ProbeRequest, folder: Path) -> str:
    """Return the script for a host with an NVIDIA driver: nvidia-smi is not asked without."""
    for name in ("version", "nvidiactl"):
        (folder / name).touch()
    text = render_probe(request)
    return text.replace("/proc/driver/nvidia/version ]", f"{folder}/version ]").replace(
        "/dev/nvidiactl ]", f"{folder}/nvidiactl ]"
    )
