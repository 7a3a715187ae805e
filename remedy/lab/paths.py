"""Where a lab keeps its files, and the names of what it makes outside of them."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import UsageError

DIR_VARIABLE = "REMEDY_LAB_DIR"
NAME_VARIABLE = "REMEDY_LAB_NAME"
DEFAULT_DIR = "/var/lib/remedy-lab"
DEFAULT_NAME = "default"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,29}[a-z0-9])?")
# The folder's path goes into overlay mount options and into ``ip -batch`` files, which have no way
# to quote these.
_PATH = re.compile(r"/[A-Za-z0-9._/+-]+")


@dataclass(frozen=True)
class LabPaths:
    """The files of one named lab.

    Args:
        base: the folder of all labs of this machine.
        name: the lab's name.
    """

    base: Path
    name: str

    @classmethod
    def of(cls, name: str | None = None, base: Path | None = None) -> LabPaths:
        """Find the paths of a lab.

        Args:
            name: the lab's name; without it, ``REMEDY_LAB_NAME`` or ``default``.
            base: the folder of all labs; without it, ``REMEDY_LAB_DIR`` or ``/var/lib/remedy-lab``.

        Raises:
            UsageError: the name or the folder cannot be used.
        """
        name = name or os.environ.get(NAME_VARIABLE) or DEFAULT_NAME
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"a lab cannot be called {name!r}",
                next_step="Use up to 31 lower-case letters, digits and dashes.",
            )
        base = base or Path(os.environ.get(DIR_VARIABLE) or DEFAULT_DIR)
        base = Path(os.path.abspath(base))  # noqa: PTH100 (resolve() would follow links, and the tag with them)
        if not _PATH.fullmatch(str(base)):
            raise UsageError(
                f"the lab cannot live in {str(base)!r}",
                next_step=f"Set {DIR_VARIABLE} to a path of letters, digits and . _ - +.",
            )
        return cls(base, name)

    @property
    def folder(self) -> Path:
        """The lab's own folder; it goes with the lab."""
        return self.base / "labs" / self.name

    @property
    def tag(self) -> str:
        """What marks this lab's namespaces, links and processes, derived from its folder alone."""
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:6]

    @property
    def state(self) -> Path:
        """The state file, which the inventory reads."""
        return self.folder / "state.json"

    @property
    def key(self) -> Path:
        """The lab's private ssh key, with the public one beside it."""
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys that are to be trusted."""
        return self.folder / "known_hosts"

    @property
    def inventory(self) -> Path:
        """A pyinfra inventory of this lab."""
        return self.folder / "inventory.py"

    @property
    def lock(self) -> Path:
        """The file that commands which change this lab lock; labs may share one, and then wait in turn.

        It is not in the lab's folder, which goes with the lab while somebody may wait.
        """
        return self.base / "locks" / self.tag[:2]

    @property
    def machine_lock(self) -> Path:
        """The file that commands lock which change what all labs of this machine share."""
        return self.base / "lock"

    @property
    def switch(self) -> str:
        """The network namespace that holds the lab's two bridges."""
        return f"remedy-{self.tag}"

    @property
    def uplink(self) -> str:
        """The link from this machine into the management network (15 characters at most)."""
        return f"rml-{self.tag}"

    def machine(self, host: str) -> str:
        """Return the name of a host's network namespace and of its machine."""
        return f"remedy-{self.tag}-{host}"

    def host(self, host: str) -> Path:
        """Return the folder of one host."""
        return self.folder / "hosts" / host
