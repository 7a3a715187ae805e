"""A host's disk: what differs from the root file system that all hosts share."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from remedy.lab import machine


@dataclass(frozen=True)
class Disk:
    """The writable layer of a host. It MUST only be written to from here while the host is off.

    Args:
        folder: the host's folder.
        root: the shared root file system.
    """

    folder: Path
    root: Path

    @property
    def upper(self) -> Path:
        """Where the kernel keeps what the host writes."""
        return self.folder / "upper"

    def wipe(self) -> None:
        """Make it empty."""
        for name in ("upper", "work"):
            machine.remove_tree(self.folder / name)
            (self.folder / name).mkdir(mode=0o755)

    def mount_options(self) -> str:
        """Return the options that mount it above the shared root."""
        return f"lowerdir={self.root},upperdir={self.upper},workdir={self.folder}/work"

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file."""
        target = self.make_folder(Path(path).parent) / Path(path).name
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, in place of what is there."""
        place = self.make_folder(Path(path).parent) / Path(path).name
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    def make_folder(self, path: Path) -> Path:
        """Make a folder like the one in the shared root that it will cover: its mode and owner count."""
        target, lower = self.upper, self.root
        for part in path.parts:
            target, lower = target / part, lower / part
            if not target.exists():
                target.mkdir(mode=0o755)
                if lower.exists():
                    shutil.copystat(lower, target)
                    os.chown(target, lower.stat().st_uid, lower.stat().st_gid)
        return target
