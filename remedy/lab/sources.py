"""Which Debian or Ubuntu archive this machine installs from: lab hosts come from there too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remedy.errors import LabError


@dataclass(frozen=True)
class Archive:
    """What debootstrap needs to know.

    Args:
        mirror: the archive's address.
        suite: the release's code name.
        components: which parts of the archive to use.
        keyring: the keys its index is signed with, where the sources name a file.
    """

    mirror: str
    suite: str
    components: tuple[str, ...]
    keyring: str | None = None


def parse_release(text: str) -> dict[str, str]:
    """Read ``os-release``."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: value.strip().strip("\"'") for key, value in pairs}


def parse_list(text: str) -> Iterator[Archive]:
    """Read apt sources in the one-line format."""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] != "deb":
            continue
        options: list[str] = []
        rest = words[1:]
        if rest and rest[0].startswith("["):
            while rest:
                word = rest.pop(0)
                options.append(word.strip("[]"))
                if word.endswith("]"):
                    break
        if len(rest) >= 3:
            keyring = next(
                (o.partition("=")[2] for o in options if o.startswith("signed-by=")), None
            )
            yield Archive(rest[0], rest[1], tuple(rest[2:]), keyring)


def parse_sources(text: str) -> Iterator[Archive]:
    """Read apt sources in the deb822 format."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for paragraph in "\n".join(lines).split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line[:1].isspace() and key:
                fields[key] += " " + line.strip()
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
            continue
        keyring = fields.get("signed-by", "")
        for mirror in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                # A key may also stand in the file itself; debootstrap takes files only.
                yield Archive(
                    mirror,
                    suite,
                    tuple(fields.get("components", "").split()),
                    keyring if keyring.startswith("/") else None,
                )


def find(etc: Path = Path("/etc")) -> Archive:
    """Find the archive of the release this machine runs.

    Args:
        etc: where ``os-release`` and ``apt`` are.

    Raises:
        LabError: this is not Debian or Ubuntu, or its sources name no such archive.
    """
    release: dict[str, str] = {}
    if (etc / "os-release").exists():
        release = parse_release((etc / "os-release").read_text(encoding="utf-8"))
    suite = release.get("VERSION_CODENAME", "")
    if not suite or not (etc / "apt").is_dir():
        raise LabError(
            "the lab builds its hosts with debootstrap from this machine's apt sources; this is "
            f"{release.get('PRETTY_NAME', 'an unknown system')}",
            next_step="Run the lab on Debian or Ubuntu, for instance in a virtual machine.",
        )
    archives: list[Archive] = []
    for path in [etc / "apt/sources.list", *sorted((etc / "apt/sources.list.d").glob("*"))]:
        if path.suffix not in {".list", ".sources"} or not path.is_file():
            continue
        parse = parse_list if path.suffix == ".list" else parse_sources
        archives += parse(path.read_text(encoding="utf-8", errors="replace"))
    for archive in archives:
        # Archives of third parties use other suites, or have no "main".
        if archive.suite != suite or "main" not in archive.components:
            continue
        if archive.mirror.startswith(("http://", "https://", "file:")):
            return archive
    raise LabError(
        f"no apt source of this machine offers the main part of {suite!r} by http, https or file",
        next_step=f"Add such a source under {etc}/apt/sources.list.d/.",
    )
