"""What systemd's own configuration files decide. Not a remedy: what several of them have to know.

Sources: systemd-system.conf(5) and logind.conf(5), CONFIGURATION DIRECTORIES AND PRECEDENCE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from remedy.probe import File, HostState
from remedy.values import Unknown

DIRECTORIES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
FALSE = ("0", "no", "n", "false", "f", "off")


@dataclass(frozen=True)
class Line:
    """A line that decides a setting: its value and where it stands."""

    path: str
    number: int
    value: str

    @property
    def shown(self) -> str:
        """Return the place, for evidence."""
        return f"{self.path}:{self.number}"


def deciding(
    host: HostState, name: str, key: str, *, without: str = "", at_boot: bool = False
) -> Line | None:
    """Return the line that decides ``key``; None where only the built-in default does.

    Args:
        host: what the probe found.
        name: the file, "logind.conf" or "system.conf".
        key: the setting.
        without: the path of a file to leave out: what would be decided if it were not there.
        at_boot: whether it is the next boot that is asked for, which finds nothing in /run.
    """
    result = None
    for file in _in_order(host, name):
        if file.path != without and not (at_boot and file.path.startswith("/run/")):
            for number, line in enumerate(file.content.decode("utf-8", "replace").splitlines(), 1):
                word, equals, value = line.strip().partition("=")
                if equals and word.strip() == key:
                    result = Line(file.path, number, value.strip())
    return result


def _in_order(host: HostState, name: str) -> Iterator[File]:
    """Yield the main file and the drop-ins in the order in which they count, the last most."""
    mains = (host.file(f"{directory}/{name}") for directory in DIRECTORIES)
    main = next((file for file in mains if isinstance(file, File) and file.exists), None)
    if main is not None:
        yield main
    by_name: Mapping[str, File] = {
        file.path.rpartition("/")[2]: file
        for directory in reversed(DIRECTORIES)
        for file in host.files_in(f"{directory}/{name}.d")
        if not isinstance(file, Unknown) and file.exists
    }
    for _, file in sorted(by_name.items()):
        yield file


def runs_systemd(host: HostState) -> bool:
    """Return whether systemd is the host's PID 1."""
    return not isinstance(host.session, Unknown) and "/run/systemd/system" in host.session.present
