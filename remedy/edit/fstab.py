"""Editing /etc/fstab: one option of one mount point, every other byte as it was. Format: fstab(5)."""

from __future__ import annotations

import re

# Fields are parted by blanks; the fourth has the options. Octal escapes such as \\040 stay as they are.
_LINE = re.compile(rb"[ \t]*[^ \t\r\n#]\S*[ \t]+(?P<point>\S+)[ \t]+\S+[ \t]+(?P<options>\S+)")


def mount_option(content: bytes, point: str, option: str) -> tuple[int, str] | None:
    """Return the line, counted from 1, where ``point`` is mounted, and the value of its ``option=``.

    The value is "" where the option is not set; None where there is no line for ``point``. Of several
    lines the last one counts, as each is applied after the one before it.
    """
    result = None
    for number, line in enumerate(content.splitlines(), 1):
        match = _LINE.match(line)
        if match is not None and match["point"] == point.encode():
            value = ""
            for word in match["options"].decode("ascii", "replace").split(","):
                name, _, setting = word.partition("=")
                value = setting if name == option else value
            result = number, value
    return result


def set_mount_option(content: bytes, point: str, option: str, value: str, new: str) -> bytes:
    """Return the file with ``option=value`` where ``point`` is mounted.

    Args:
        content: the file as it is.
        point: the mount point.
        option: the option's name.
        value: the new one.
        new: the line to add where there is none for ``point``.
    """
    present = mount_option(content, point, option)
    if present is None:
        gap = b"" if not content or content.endswith(b"\n") else b"\n"
        return content + gap + new.encode() + b"\n"
    lines = content.splitlines(keepends=True)
    index = present[0] - 1
    match = _LINE.match(lines[index])
    assert match is not None
    words = [w for w in match["options"].split(b",") if w.partition(b"=")[0] != option.encode()]
    options = b",".join([*words, f"{option}={value}".encode()])
    lines[index] = (
        lines[index][: match.start("options")] + options + lines[index][match.end("options") :]
    )
    return b"".join(lines)
