"""A script's output on its way through gateways, and how it ended. Pure.

ClusterShell passes lines on, each as a message, and loses what stands before a carriage return that is no
line's end (``EngineClient._readlines``). So output is packed on the host into few long lines of base64; among
errors a carriage return ends a line. The exit code comes on standard error, behind a mark: that of ssh says how
a pipe ended. What a script packs by itself, such as a probe, goes as it is: packed twice it would hardly be
shorter, and this machine would unpack it twice for every host.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import shlex
import zlib
from dataclasses import dataclass, field

from remedy.answers import read_exit
from remedy.transport.script import Script
from remedy.transport.wrapper import MOST_OUTPUT, Flood, Stream, timed

# Of one line; a gateway reads 64 KiB at a time.
_WIDTH = 65_532
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class EndMark:
    """The word behind which a host says how a script ended; a new one for each request."""

    word: str = field(default_factory=lambda: f"remedy-end-{secrets.token_hex(8)}")

    def split(self, errors: str) -> tuple[str, int | None]:
        """Return a script's errors, and its exit code; None where it did not come to its end.

        Args:
            errors: all that came on standard error.
        """
        return read_exit(errors, self.word)


def packed(script: Script, mark: EndMark) -> str:
    """Return the command that runs a script on standard input, and packs what it prints, where it does not.

    It ends when nothing that the script started has its output open any more.

    Args:
        script: what is to run.
        mark: what its exit code comes behind.
    """
    columns = f"REMEDY_COLUMNS={_WIDTH} " if script.packs else ""
    # Descriptor 3 is what is packed, until the errors have got a pipe of their own.
    pipe = (
        f'{{ {{ {columns}{timed(script)}; printf "\\n%s %s\\n" {mark.word} $? >&2; }} 2>&1 >&3 3>&- | '
        'tr "\\r" "\\n" >&2; } 3>&1'
    )
    if not script.packs:
        pipe += (
            " | { if command -v gzip >/dev/null; then gzip -1 -c; else cat; fi; } | "
            f"base64 -w {_WIDTH}"
        )
    return f'sh -c {shlex.quote(pipe)} sh "$@"'


def unpacked(stream: Stream, script: Script) -> str:
    """Return what a script printed, without the last line's end.

    Args:
        stream: what came of its host.
        script: that ran there.

    Raises:
        Flood: it is too much.
        ValueError: it was not packed.
    """
    if script.packs:
        return stream.text
    try:
        content = base64.b64decode(stream.text.replace("\n", ""), validate=True)
        if content.startswith(_GZIP):
            content = _inflated(content)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from error
    if len(content) > MOST_OUTPUT:
        raise Flood(f"the script printed more than {MOST_OUTPUT >> 20} MiB")
    return content.decode("utf-8", "backslashreplace").removesuffix("\n")


def _inflated(content: bytes) -> bytes:
    """Return what was packed, as far as it may be long, and a byte more."""
    reader = zlib.decompressobj(wbits=31)
    inflated = reader.decompress(content, MOST_OUTPUT + 1)
    if len(inflated) <= MOST_OUTPUT and not reader.eof:
        raise ValueError("the packed output breaks off")
    return inflated
