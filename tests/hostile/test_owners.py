"""Root works in folders of its own, acts as the user in a user's, and says why where it does neither."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remedy.apply import script
from remedy.apply.report import HostReport
from remedy.plan import FileAction, sha256
from tests.hostile import racer
from tests.hostile.racer import NAME, SECRET, Ground
from tests.unit.host_bench import SHELLS, Bench, shell_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it acts as another user: it needs root")

OLD, NEW = b"old\n", b"new\n"
OTHER = 1
"""daemon: a second user that every host has."""
NOBODYS = 54321
"""A number that no account has."""


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """A host; the user can go through the folders above it, as above a home."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="owners-") as base:
        Path(base).chmod(0o755)
        made = Ground(Path(base))
        monkeypatch.setattr(script, "ROOT", str(made.state))
        monkeypatch.setattr(script, "LOG", str(made.folder / "log"))
        yield made


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, ground: Ground) -> Bench:
    return Bench(ground.home, shell_of(request.param))


def results(report: HostReport) -> list[str]:
    assert report.finished, report.refused
    return [f"{result.status.value}: {result.detail}" for result in report.results.values()]


def test_a_users_files_are_changed_by_the_user_and_put_back(ground: Ground, bench: Bench) -> None:
    path = bench.spliced(NAME, b"a\nold\nz\n", b"a\nnew\nz\n")
    new, gone = bench.file(".a/b/new.conf", None, NEW), bench.file("gone", OLD, None)
    for file in (path, gone):
        os.chown(file, racer.USER, racer.USER)
        file.chmod(0o640)
    assert results(bench.rehearse()) == ["ready: "] * 3
    assert not ground.state.exists()
    assert results(bench.apply()) == ["done: "] * 3
    assert (path.read_bytes(), new.read_bytes(), gone.exists()) == (b"a\nnew\nz\n", NEW, False)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [f.stat().st_uid for f in (path, new, new.parent)] == [racer.USER] * 3
    assert results(bench.apply()) == ["already: "] * 3
    assert results(bench.undo()) == ["done: "] * 3
    assert (path.read_bytes(), new.exists(), gone.read_bytes()) == (b"a\nold\nz\n", False, OLD)
    assert [f.stat().st_uid for f in (path, gone)] == [racer.USER] * 2
    assert sorted(p.name for p in ground.home.iterdir()) == [".a", "gone", NAME, "sub"]


def test_what_the_user_changed_since_is_left_alone(bench: Bench) -> None:
    path = bench.file(NAME, OLD, NEW)
    os.chown(path, racer.USER, racer.USER)
    path.write_bytes(b"the user's fix\n")
    (line,) = results(bench.apply())
    assert line.startswith(f"stale: {path} was changed since the plan was made")
    assert path.read_bytes() == b"the user's fix\n"


def linked(ground: Ground, bench: Bench, target: Path, before: bytes) -> None:
    path = ground.home / NAME
    path.symlink_to(target)
    os.lchown(path, racer.USER, racer.USER)
    bench.file(NAME, None, NEW)
    action = FileAction(
        path=str(path), real_path=str(target), before=sha256(before), after=sha256(NEW)
    )
    bench.changes = (bench.changes[0].model_copy(update={"action": action}),)


def test_a_users_link_leads_where_the_user_may_write(ground: Ground, bench: Bench) -> None:
    target = ground.theirs(ground.sub / "dotfile", OLD)
    linked(ground, bench, target, OLD)
    assert results(bench.apply()) == ["done: "]
    assert ((ground.home / NAME).is_symlink(), target.read_bytes()) == (True, NEW)
    assert results(bench.undo()) == ["done: "]
    assert ((ground.home / NAME).is_symlink(), target.read_bytes()) == (True, OLD)


def test_a_users_link_to_a_file_of_roots_leads_root_nowhere(ground: Ground, bench: Bench) -> None:
    linked(ground, bench, ground.roots / NAME, SECRET)
    for report in (bench.rehearse(), bench.apply()):
        (line,) = results(report)
        assert line.startswith(f"failed: acting as uid {racer.USER}, whose folder it is: ")
        assert ground.harm(str(report)) == ""


def hard_link(ground: Ground) -> None:
    (ground.home / NAME).unlink()
    os.link(ground.roots / NAME, ground.home / NAME)
    ground.before = ground.what_is_roots()


def users_second_name(ground: Ground) -> None:
    os.link(ground.home / NAME, ground.sub / "twin")


def pipe(ground: Ground) -> None:
    (ground.home / NAME).unlink()
    os.mkfifo(ground.home / NAME)


def roots_file(ground: Ground) -> None:
    os.chown(ground.home / NAME, 0, 0)


def several(ground: Ground) -> None:
    os.chown(ground.homes, OTHER, OTHER)


def nobodys(ground: Ground) -> None:
    os.chown(ground.home, NOBODYS, NOBODYS)


def of_a_group(ground: Ground) -> None:
    os.chown(ground.home, 0, OTHER)
    ground.home.chmod(0o775)


def of_everybody(ground: Ground) -> None:
    os.chown(ground.home, 0, 0)
    ground.home.chmod(0o777)


def like_tmp(ground: Ground) -> None:
    os.chown(ground.home, 0, 0)
    ground.home.chmod(0o1777)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (hard_link, "is not of the user whose folder it is in: chown it"),
        (users_second_name, "has a second name (hard link)"),
        (pipe, "is no regular file: move it away"),
        (roots_file, "is not of the user whose folder it is in: chown it"),
        (several, "belong to several users (uid 1 and 65534): change it by hand"),
        (nobodys, "has no account on this host: chown the folder"),
        (of_a_group, "others than root can write in"),
        (of_everybody, "others than root can write in"),
        (like_tmp, "everybody may make files in"),
    ],
)
def test_where_nobody_can_be_acted_as_it_is_refused_with_the_next_step(
    ground: Ground, bench: Bench, odd: Callable[[Ground], None], reason: str
) -> None:
    os.chown(bench.file(NAME, OLD, NEW), racer.USER, racer.USER)
    odd(ground)
    before = (ground.home / NAME).lstat()
    for report in (bench.rehearse(), bench.apply()):
        (line,) = results(report)
        assert line.startswith("failed: ")
        assert reason in line
        assert ground.harm(str(report)) == ""
    after = (ground.home / NAME).lstat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_host_whose_records_others_could_lead_elsewhere_is_refused(
    ground: Ground, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.root = ground.roots
    bench.file("hosts", None, NEW)
    monkeypatch.setattr(script, "ROOT", str(ground.home / "state"))
    assert f"is in a folder of uid {racer.USER}: chown that to root" in bench.apply().refused
    assert not (ground.home / "state").exists()


def test_where_others_can_write_the_log_is_with_the_records_and_its_name_a_link(
    ground: Ground, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.root = ground.roots
    bench.file("hosts", None, NEW)
    monkeypatch.setattr(script, "LOG", str(ground.logs / "log"))
    for report in (bench.apply(), bench.undo()):
        assert results(report) == ["done: "]
    assert (ground.logs / "log").readlink() == ground.state / "log.jsonl"
    assert (ground.logs / "log").read_text().count('"state":"done"') == 2


def test_a_file_system_that_a_user_mounted_is_the_users_whatever_it_says(tmp_path: Path) -> None:
    """FUSE: who answers for such a folder says of it what the user likes, also that it is root's."""
    library = script._library(("base", "owner"))
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "30 1 0:26 / / rw - ext4 /dev/vda rw\n"
        "31 30 0:99 / /home/u/x rw,nosuid,nodev - fuse.sshfs evil,user_id=0 rw,user_id=65534,group_id=1\n"
    )
    text = (
        f"ROOT=/r RUN=r\n{library}\nmain_device=26\n"
        'for line in 0:0:755:99:/home/u/x 0:0:755:26:/etc; do judge "$line"; echo "$KIND $HOLDER"; done'
    )
    inside = f'mount --bind {mounts} /proc/$$/mountinfo || exit 77; eval "$0"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, text], capture_output=True, text=True, check=False
    )
    if done.returncode == 77:
        pytest.skip(f"no mount over a file of /proc here: {done.stderr}")
    assert done.stdout.splitlines() == ["user 65534", "own 0"]
