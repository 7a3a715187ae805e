"""What kind of lab to bring up."""

from __future__ import annotations

import re
from dataclasses import dataclass

from remedy.errors import UsageError
from remedy.lab import net
from remedy.lab.life import Life

# Host names are made of it, and those must be legal ones.
_PREFIX = re.compile(r"[a-z](?:[a-z0-9-]{0,19}[a-z0-9])?")
_RELEASE = re.compile(r"[a-z]*")


@dataclass(frozen=True)
class UpOptions:
    """What kind of lab to bring up.

    Args:
        count: how many hosts.
        prefix: what their inventory names begin with.
        faults: what to break on each of them once they are up.
        docker: whether dockerd can run in them.
        mpi: whether Open MPI is installed in them.
        life: what runs in them; those that are lived in or asleep have dockerd.
        release: code name of the release they run, of this machine's distribution; "" is this machine's own.
    """

    count: int = 4
    prefix: str = "gpu"
    faults: tuple[str, ...] = ()
    docker: bool = False
    mpi: bool = False
    release: str = ""
    life: Life = "bare"

    @property
    def containers(self) -> bool:
        """Whether dockerd can run in them."""
        return self.docker or self.life in ("lived-in", "asleep")

    def check(self) -> None:
        """Refuse what cannot become a lab.

        Raises:
            UsageError: with what is possible.
        """
        if not 1 <= self.count <= net.MAX_HOSTS:
            raise UsageError(
                f"a lab cannot have {self.count} hosts", next_step=f"Ask for 1 to {net.MAX_HOSTS}."
            )
        if not _PREFIX.fullmatch(self.prefix):
            raise UsageError(
                f"host names cannot begin with {self.prefix!r}",
                next_step="Use a short prefix of lower-case letters, digits and dashes, such as gpu.",
            )
        if not _RELEASE.fullmatch(self.release):
            raise UsageError(
                f"{self.release!r} is not a release's code name",
                next_step="Give one of this machine's distribution, such as trixie for Debian 13.",
            )

    def names(self) -> list[str]:
        """Return the hosts' names, so that they sort: gpu01, ..., with three digits from 100 hosts on."""
        width = max(2, len(str(self.count)))
        return [f"{self.prefix}{number:0{width}d}" for number in range(1, self.count + 1)]
