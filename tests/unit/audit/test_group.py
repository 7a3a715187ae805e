"""``.remedy`` of a group: what one user writes there another reads and continues, whatever their umask."""

from __future__ import annotations

import codecs
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from remedy.audit import Journal
from remedy.audit.agreement import Agreement, keep, plan_path
from remedy.audit.journal import FILE_NAME, read_records, verify_chain
from remedy.audit.presence import hold, is_at_work
from remedy.errors import RefusedError, RemedyError
from remedy.files import is_shared
from remedy.plan import Plan, read_plan
from remedy.secret import KEY_NAME, make_seal
from tests.unit.audit.agreement_bench import change
from tests.unit.audit.agreement_bench import plan as plan_with

ANN, BOB, MALLORY, GROUP = 64_001, 64_002, 64_003, 64_100
RUN = "20261123T000000Z-00000001"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become other users")


@pytest.fixture
def home() -> Iterator[Path]:
    """The folder of a journal as docs/teams.md says to make it, below folders that all can pass."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    home = folder / ".remedy"
    home.mkdir()
    os.chown(home, ANN, GROUP)
    home.chmod(0o2770)
    yield home
    shutil.rmtree(folder)


def as_user(uid: int, work: Callable[[], object], *, groups: tuple[int, ...] = (GROUP,)) -> str:
    """Do something as a user whose umask lets nobody in; return the words of its error, "" for none."""
    codecs.lookup("ascii")  # loaded now: the user may have no way to the folder of Python
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - its own process
        words = ""
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0o077)
            work()
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"
        os.write(writer, words.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as file:
        return file.read()


def everything(home: Path, number: int, plan: Plan) -> None:
    """Write what a command writes there."""
    run = f"{RUN[:-1]}{number}"
    Journal(home, run=run, mode="apply").write("began", host="gpu01")
    keep(Agreement(plan), home, run)
    assert hold(home, run) is not None
    make_seal(home)


@needs_root
def test_what_the_users_of_a_group_write_is_all_of_theirs(home: Path) -> None:
    plan = plan_with(change("gpu01", 1))
    for number, uid in enumerate((ANN, BOB, ANN), 1):
        assert as_user(uid, partial(everything, home, number, plan)) == ""
    path = home / FILE_NAME
    assert verify_chain(path) == (3, "")
    assert [record.number for record in read_records(path)] == [0, 1, 2]

    def read() -> None:
        assert read_plan(plan_path(home, RUN), of_journal=True).digest == plan.digest
        assert not is_at_work(home, RUN)
        make_seal(home)

    assert as_user(BOB, read) == ""
    assert "Permission denied" in as_user(MALLORY, read, groups=())
    for entry in home.rglob("*"):
        mode = stat.S_IMODE(entry.stat().st_mode)
        assert mode == (0o2770 if entry.is_dir() else 0o660), f"{entry}: {mode:o}"
        assert entry.stat().st_gid == GROUP


@needs_root
def test_a_folder_of_one_user_says_how_it_becomes_a_groups(home: Path) -> None:
    home.chmod(0o700)
    plan = plan_with(change("gpu01", 1))
    assert as_user(ANN, lambda: everything(home, 1, plan)) == ""
    words = as_user(BOB, lambda: everything(home, 2, plan))
    assert words.startswith("RemedyError")
    assert "chgrp -R GROUP" in words
    for step in words.rpartition("group of yours: ")[2].split("; "):
        subprocess.run(["sh", "-c", step.replace("GROUP", str(GROUP))], check=True)
    assert is_shared(home)
    assert as_user(BOB, lambda: everything(home, 2, plan)) == ""
    assert verify_chain(home / FILE_NAME) == (2, "")


@needs_root
def test_a_link_in_the_folder_of_a_group_leads_nobody_elsewhere(home: Path) -> None:
    """Root writes a record where somebody of the group has put a link to a file of root's."""
    target = home.parent / "of-root"
    target.write_text("as it was\n")
    for name in ("journal.lock", FILE_NAME):
        (home / name).symlink_to(target)
        with pytest.raises(RemedyError):
            Journal(home, run=RUN, mode="apply").write("began")
        (home / name).unlink()
    assert target.read_text() == "as it was\n"


def test_a_folder_that_everybody_can_write_holds_no_record(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(RefusedError, match="written by everybody"):
        Journal(tmp_path, run=RUN, mode="apply")
    assert not list(tmp_path.iterdir())


def test_a_folder_of_one_user_lets_nobody_else_read(tmp_path: Path) -> None:
    home = tmp_path / ".remedy"
    everything(home, 1, plan_with(change("gpu01", 1)))
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in home.rglob("*")} == {0o600, 0o700}


def test_the_key_of_a_group_is_refused_where_others_read_it(tmp_path: Path) -> None:
    home = tmp_path / ".remedy"
    home.mkdir()
    home.chmod(0o2770)
    make_seal(home)
    (home / KEY_NAME).chmod(0o664)
    with pytest.raises(RefusedError, match="others than its group"):
        make_seal(home)
    (home / KEY_NAME).chmod(0o660)
    home.chmod(0o700)
    with pytest.raises(RefusedError, match="others than its owner"):
        make_seal(home)
