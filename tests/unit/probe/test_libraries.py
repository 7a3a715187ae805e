"""Libraries of the system are looked for where the loader looks, on hosts with an NVIDIA driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from remedy.probe import ProbeRequest, Software
from tests.unit.probe.script_bench import run, with_driver

SHELLS = ("sh", "bash", "busybox")
VERSION = "580.65.06"


def look(folder: Path, shell: str = "sh", **environment: str) -> Software:
    """Run the probe on a host with a driver whose system folders and ld.so.conf are in a folder."""
    text = with_driver(ProbeRequest(), folder)
    for name in ("/etc/ld.so.conf", "/etc/$pattern"):
        assert name in text
        text = text.replace(name, f"{folder}{name}")
    usual = "/lib /usr/lib /lib64 /usr/lib64 /lib/*-linux-gnu* /usr/lib/*-linux-gnu*;"
    assert usual in text
    text = text.replace(usual, f"{folder}/usr/lib {folder}/lib64;")
    text = text.replace("/usr/* | /lib* |", f"{folder}/* | /usr/* |")
    state, _ = run(ProbeRequest(nonce=nonce_of(text)), shell, text=text, **environment)
    assert isinstance(state.software, Software)
    return state.software


def nonce_of(text: str) -> str:
    return text.partition("nonce=")[2].partition("\n")[0]


def place(folder: Path, files: Mapping[str, str]) -> None:
    """Make files, and links where the content begins with an arrow."""
    for name, content in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            path.symlink_to(content[2:].replace("ROOT", str(folder)))
        else:
            path.write_text(content.replace("ROOT", str(folder)))


CASES: dict[str, tuple[dict[str, str], list[str]]] = {
    "a folder of ld.so.conf.d": (
        {
            "etc/ld.so.conf.d/nvidia.conf": "# from outside\nROOT/mounted/lib64 # the driver\n",
            f"mounted/lib64/libcuda.so.{VERSION}": "",
            "mounted/lib64/libcuda.so.1": f"->libcuda.so.{VERSION}",
        },
        [f"mounted/lib64/libcuda.so.{VERSION}"],
    ),
    "a file that ld.so.conf includes, and no end of line": (
        {
            "etc/ld.so.conf": "include\tmore/*.conf\nROOT/none,ROOT/mounted",
            "etc/more/a.conf": "include ROOT/etc/more/a.conf ROOT/etc/last.conf",
            "etc/last.conf": "ROOT/deep",
            f"deep/libcuda.so.{VERSION}": "",
        },
        [f"deep/libcuda.so.{VERSION}"],
    ),
    "a link of the system's folder that leads out of it": (
        {
            f"mounted/libcuda.so.{VERSION}": "",
            "usr/lib/libcuda.so.1": f"->ROOT/mounted/libcuda.so.{VERSION}",
        },
        [f"mounted/libcuda.so.{VERSION}"],
    ),
    "what an upgrade left behind is not what programs ask for": (
        {
            "usr/lib/libcuda.so.550.54.14": "",
            f"usr/lib/libcuda.so.{VERSION}": "",
            "usr/lib/libcuda.so.1": f"->libcuda.so.{VERSION}",
        },
        [f"usr/lib/libcuda.so.{VERSION}"],
    ),
    "a library without a version in its name": (
        {"lib64/libcuda.so.1": ""},
        ["lib64/libcuda.so.1"],
    ),
    "nowhere": ({"usr/lib/libc.so.6": ""}, []),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("case", CASES)
def test_where_the_loader_looks(tmp_path: Path, case: str, shell: str) -> None:
    files, libraries = CASES[case]
    place(tmp_path, files)
    found = look(tmp_path, shell)
    assert [path for path, _ in found.libcuda] == [str(tmp_path / name) for name in libraries]
    assert {version for _, version in found.libcuda} <= {VERSION, ""}


def test_the_path_of_sessions_comes_first_and_each_folder_once(tmp_path: Path) -> None:
    place(
        tmp_path,
        {
            "etc/ld.so.conf.d/a.conf": "ROOT/b\nROOT/a/\n/home/of/somebody/lib\nrelative\n",
            f"a/libcuda.so.{VERSION}": "",
            "b/libcuda.so.1": "->gone",
            "a/libnccl.so.2.27.5": "",
            "usr/lib/x": "",
            "lib64/x": "",
        },
    )
    a, b = tmp_path / "a", tmp_path / "b"
    found = look(tmp_path, LD_LIBRARY_PATH=f"{a}::relative:{tmp_path}/un*:{a}/")
    assert found.searched == (str(a), str(b), f"{tmp_path}/usr/lib", f"{tmp_path}/lib64")
    assert found.aside == ("/home/of/somebody/lib",)
    assert found.dangling == (f"{b}/libcuda.so.1",)
    assert found.libcuda == ((f"{a}/libcuda.so.{VERSION}", VERSION),)
    assert (f"{a}/libnccl.so.2.27.5", "2.27.5") in found.nccl


def test_a_host_without_a_driver_is_not_searched() -> None:
    state, _ = run(ProbeRequest())
    assert isinstance(state.software, Software)
    assert (state.software.searched, state.software.libcuda) == ((), ())
