"""Files are written whole: nothing is half there, whatever happens on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remedy import files
from remedy.files import create_whole, full_path, write_whole


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_content_and_the_mode(tmp_path: Path) -> None:
    write_whole(tmp_path / "key", "gämma\n", mode=0o600)
    assert (tmp_path / "key").read_bytes() == "gämma\n".encode()
    assert mode_of(tmp_path / "key") == 0o600
    assert names(tmp_path) == ["key"]


def test_without_a_mode_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "plan", b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "plan") == 0o640


def test_without_a_mode_a_file_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_text("old")
    path.chmod(0o604)
    write_whole(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o604)


def test_a_link_is_replaced_and_its_target_is_left_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("theirs")
    link.symlink_to(target)
    write_whole(link, "ours")
    assert (target.read_text(), link.is_symlink(), link.read_text()) == ("theirs", False, "ours")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "plan"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync", full) if step == "fsync" else (Path, "replace", full)))
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert (path.read_text(), names(tmp_path)) == ("old", ["plan"])


def test_content_folder_and_name_are_flushed_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        steps.append("folder" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "content")
        fsync(descriptor)

    def noted_replace(part: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(part, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    write_whole(tmp_path / "plan", "new")
    assert steps == ["content", "rename", "folder"]


def test_the_temporary_name_is_a_new_one_each_time_and_is_never_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    real = os.open

    def noted(path: os.PathLike[str], flags: int, mode: int = 0o777) -> int:
        opened.append((os.fspath(path), flags))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", noted)
    for _ in range(2):
        write_whole(tmp_path / "plan", "x")
    parts = [(name, flags) for name, flags in opened if Path(name).name.startswith(".plan.")]
    assert len({name for name, _ in parts}) == len(parts) == 2
    assert all(flags & os.O_EXCL for _, flags in parts)


def test_the_first_of_two_creators_wins(tmp_path: Path) -> None:
    path = tmp_path / "key"
    create_whole(path, "first", mode=0o600)
    with pytest.raises(FileExistsError):
        create_whole(path, "second", mode=0o644)
    assert (path.read_text(), mode_of(path), names(tmp_path)) == ("first", 0o600, ["key"])


def test_a_path_from_the_root_is_that_of_the_file_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path)
    assert full_path(Path("link")) == full_path(Path("gone/../file")) == str(tmp_path / "file")
    assert full_path(Path("circle")) in ("circle", str(tmp_path / "circle"))
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert full_path(Path("inventory.py")) == "inventory.py"


def test_the_dash_is_named_by_which_way_it_goes() -> None:
    assert files.name_of(files.STANDARD) == "standard input"
    assert files.name_of_output(files.STANDARD) == "standard output"
    assert files.name_of(Path("a b")) == files.name_of_output(Path("a b")) == "a b"
