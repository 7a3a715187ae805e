"""The wheel: what is in it, and that it works where it is installed, from any directory.

Nothing is downloaded. The wheel is built by the hatchling of this environment where it has one. It is installed
without its dependencies, and those are lent to the new environment by a path file that names the directories
in which they are installed here. Python does not follow the path files inside of these directories, so an
editable installation of this checkout is not lent with them.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

CHECKOUT = Path(__file__).parents[2]
MINUTES = 5
UNREACHABLE = 5

# Port 1 of this machine: nothing listens there, so the connection is refused at once.
INVENTORY = 'gpus = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "cluster_address": "192.0.2.1"})]\n'


def run(
    command: Sequence[str | Path], directory: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    # PYTHONPATH or a virtual environment that is active must not show the new environment another remedy.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=directory,
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, just built."""
    folder = tmp_path_factory.mktemp("wheel")
    here = importlib.util.find_spec("hatchling") is not None
    pip = [sys.executable, "-m", "pip", "wheel", *(["--no-build-isolation"] if here else [])]
    done = run([*pip, "--no-deps", "--wheel-dir", folder, CHECKOUT], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a new environment with the wheel in it."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin/python"
    # By the pip of this environment: to install another costs more than all else here.
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    done = run([*pip, "install", "--no-deps", "--no-index", wheel], home)
    assert done.returncode == 0, done.stdout + done.stderr
    site_packages = run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], home
    )
    lent = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    Path(site_packages.stdout.strip(), "lent.pth").write_text("\n".join(lent) + "\n")
    return home / "bin"


def test_everything_that_is_read_at_run_time_is_in_the_wheel(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    # deploys and templates are links inside of the package, which a walk does not follow.
    sources = {
        str(Path("remedy", path.relative_to(CHECKOUT / root)))
        for root, folder in (("remedy", "remedy"), ("", "deploys"), ("", "templates"))
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= packed
    assert {
        "remedy/probe/host/frame.sh",
        "remedy/apply/host/base.sh",
        "remedy/lab/boot.sh",
        "remedy/deploys/hosts_file.py",
        "remedy/templates/hosts_block.j2",
    } <= sources
    assert {name.split("/")[0].split("-")[0] for name in packed} == {"remedy", "remedy_cluster"}


def test_the_manual_pages_are_in_the_wheel(wheel: Path) -> None:
    pages = {path.name for path in (CHECKOUT / "man").iterdir()}
    place = ".data/data/share/man/man1/"
    names = [name.partition(place)[2] for name in ZipFile(wheel).namelist() if place in name]
    assert set(names) == pages
    assert {"remedy.1", "remedy-apply.1", "remedy-lab-up.1"} <= pages


def test_it_is_the_installed_one_that_runs(installed: Path, tmp_path: Path) -> None:
    told = run(
        [installed / "python", "-c", "import remedy; print(remedy.__file__)"], tmp_path
    ).stdout
    assert Path(told.strip()).is_relative_to(installed.parent)


def test_help_names_the_commands(installed: Path, tmp_path: Path) -> None:
    done = run([installed / "remedy", "--help"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"check", "plan", "apply", "verify"} <= set(done.stdout.split())


def test_a_remedy_explains_itself(installed: Path, tmp_path: Path) -> None:
    done = run([installed / "remedy", "explain", "hostname"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "host name" in done.stdout


def test_a_plan_for_a_host_that_is_not_there_says_so_and_what_to_do(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "inventory.py").write_text(INVENTORY)
    done = run([installed / "remedy", "plan", "inventory.py"], tmp_path, HOME=str(tmp_path))
    told = done.stdout + done.stderr
    assert done.returncode == UNREACHABLE, told
    assert "gpu01 (127.0.0.1:1): no connection" in told
    assert "ssh -p 1 127.0.0.1" in told
    assert "Traceback" not in told
