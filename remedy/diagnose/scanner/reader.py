"""Opening logs: plain, compressed, from standard input; and folders of them. Blocks of bytes come out."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

from remedy.errors import UsageError, raise_together
from remedy.files import Pipe, standard_input

BLOCK = 1 << 20  # fits a core's second-level cache; more is not quicker
STDIN = "-"
_ELF = b"\x7fELF"
_LOOKED_AT = 256  # bytes at the beginning of a file: what begins as text is read as far as it is
_A_LINE = 32  # bytes of a first line by which it is known
_MOST_CONTROL = 0.05  # of them
# Tabs, ends of lines and pages, what a progress bar goes back with, the beginning of a colour; and text.
_OF_TEXT = bytes((8, 9, 10, 11, 12, 13, 27, *range(32, 127), *range(128, 256)))
# What stands beside the logs of a job and is none: data, pages, and the program with its settings.
_SKIPPED = frozenset(
    (
        *(
            ".pyc",
            ".pt",
            ".pth",
            ".bin",
            ".safetensors",
            ".npz",
            ".npy",
            ".png",
            ".jpg",
            ".so",
            ".o",
        ),
        *(
            ".html",
            ".md",
            ".rst",
            ".ipynb",
            ".py",
            ".sh",
            ".bash",
            ".sbatch",
            ".slurm",
            ".pbs",
            ".lsf",
        ),
        *(".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".js", ".toml", ".ini", ".cfg"),
        *(".whl", ".zip", ".tar"),
    )
)


def whole(blocks: Iterator[bytes], most: int) -> tuple[bytes | None, Iterator[bytes]]:
    """Return a log in one piece, None where it is longer, and all its blocks.

    Args:
        blocks: of the log.
        most: bytes that are kept.
    """
    start: list[bytes] = []
    size = 0
    for block in blocks:
        start.append(block)
        size += len(block)
        if size > most:
            return None, chain(start, blocks)
    return b"".join(start), iter(start)


@dataclass
class Source:
    """One log.

    Args:
        name: as it is shown to the user.
        blocks: yields its bytes.
        size: bytes on disk, 0 where that is not known.
        trouble: why it could not be read to its end, "" where it could.
        progress: is called with how many bytes of the file have been read.
    """

    name: str
    blocks: Callable[[], Iterator[bytes]]
    size: int = 0
    trouble: str = ""
    progress: Callable[[int], None] = field(default=lambda _: None)

    def read(self) -> Iterator[bytes]:
        """Yield the log's bytes. Where it breaks off, yield what there is and set ``trouble``."""
        blocks = self.blocks()
        while True:
            try:
                block = next(blocks, b"")
            except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, UsageError) as error:
                self.trouble = str(error) or type(error).__name__
                return
            except Exception as error:  # a decompressor's own kind of error
                if type(error).__module__.split(".")[0] not in (
                    "zstandard",
                    "backports",
                    "compression",
                ):
                    raise
                self.trouble = str(error)
                return
            if not block:
                return
            yield block


def sources(paths: Iterable[Path | str]) -> list[Source]:
    """Return the logs that the paths stand for; a folder stands for all files in it that can be logs.

    Args:
        paths: files, folders, or "-" for standard input.

    Raises:
        UsageError: a path does not exist, or there is no log in any of them.
    """
    logs: list[Source] = []
    named = list(paths)
    raise_together(
        UsageError(f"no such file or folder: {str(path)!r}", next_step="Check the path.")
        for path in named
        if str(path) != STDIN and not Path(path).exists()
    )
    raise_together(
        UsageError(
            f"{str(path)!r} is a device, and no log",
            next_step="Name a file, or - for standard input.",
        )
        for path in named
        if str(path) != STDIN and (Path(path).is_char_device() or Path(path).is_block_device())
    )
    for path in named:
        if str(path) == STDIN:
            logs.append(Source("standard input", _standard_input))
            continue
        path = Path(path)
        if path.is_dir():
            files = sorted(_files(path))
            logs += [_file(file, str(file.relative_to(path.parent))) for file in files]
        else:
            logs.append(_file(path, str(path)))
    if not logs:
        raise UsageError(
            f"no log in {', '.join(repr(str(path)) for path in named) or 'nothing'}",
            next_step="Name files, folders of logs, or - for standard input. Programs, settings and pages "
            "in a folder are left out: name one to have it read.",
        )
    return logs


def is_binary(beginning: bytes) -> bool:
    """Return whether a file begins like a program, a core dump or other data, with more control than text has.

    Args:
        beginning: its first bytes; what is empty (NUL) in a log that was cut short counts for nothing.
    """
    if beginning.startswith(_ELF):
        return True
    first = beginning[:_LOOKED_AT].partition(b"\n")[0]
    looked = first if len(first) >= _A_LINE else beginning[:_LOOKED_AT]
    written = looked.replace(b"\0", b"")
    return len(written.translate(None, _OF_TEXT)) > _MOST_CONTROL * len(written)


def from_text(name: str, data: bytes) -> Source:
    """Return a log that is in memory already."""
    return Source(
        name, lambda: (data[at : at + BLOCK] for at in range(0, len(data), BLOCK)), len(data)
    )


def _files(folder: Path) -> Iterator[Path]:
    """Yield the logs below a folder, without hidden folders: .remedy has what earlier runs found."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (file for name in names if _is_log(file := Path(place, name)) and file.is_file())


def _is_log(path: Path) -> bool:
    return path.suffix not in _SKIPPED and not path.name.startswith(".")


def _file(path: Path, name: str) -> Source:
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    source = Source(name, lambda: iter(()), size)
    source.blocks = lambda: _opened(path, source)
    return source


def _opened(path: Path, source: Source) -> Iterator[bytes]:
    with io.FileIO(path, opener=_at_once) as raw:
        if not raw.seekable():  # a named pipe, or the <(command) of a shell
            stream = io.BufferedReader(Pipe(raw.fileno()))
            yield from _text(_pieces(_expanded(stream, stream.peek(6))))
            return
        head = raw.read(6)
        raw.seek(0)
        yield from _text(
            _pieces(_expanded(raw, head), progress=lambda: source.progress(raw.tell()))
        )


def _at_once(path: str, flags: int) -> int:
    """Open a file; a named pipe that nobody writes to yet is waited for with its first bytes."""
    return os.open(path, flags | os.O_NONBLOCK)


def _standard_input() -> Iterator[bytes]:
    stream = standard_input()
    head = stream.peek(6) if isinstance(stream, io.BufferedReader) else b""
    yield from _text(_pieces(_expanded(stream, head)))


def _expanded(raw: IO[bytes], head: bytes) -> Any:
    """Return the file, or what expands it, by its first bytes: its name may be missing or wrong."""
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if head.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(raw)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd(raw)
    return raw


def _zstd(raw: IO[bytes]) -> IO[Any]:
    import zstandard

    reader: IO[Any] = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return reader


def _pieces(stream: IO[bytes], progress: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    # Of a file that breaks off, a large read returns nothing at all.
    read = getattr(stream, "read1", stream.read)
    while block := read(BLOCK):
        yield block
        progress()


def _text(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Turn UTF-16 into UTF-8, and leave a byte order mark out; everything else stays as it is."""
    first = next(blocks, b"")
    encoding = _wide_encoding(first)
    if not encoding:
        first = first.removeprefix(b"\xef\xbb\xbf")
        if first:
            yield first
        yield from blocks
        return
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first).encode()
    for block in blocks:
        yield decoder.decode(block).encode()


def _wide_encoding(beginning: bytes) -> str:
    """Return how a text of two bytes a character is written, by its mark or its empty bytes; "" for another."""
    if beginning[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    looked = beginning[:_LOOKED_AT]
    half = len(looked) // 2
    for encoding, empty, written in (
        ("utf-16-le", looked[1::2], looked[::2]),
        ("utf-16-be", looked[::2], looked[1::2]),
    ):
        if half and empty.count(0) > 0.9 * half and written.count(0) < 0.1 * half:
            return encoding
    return ""


def blocks_of(source: Source) -> tuple[bytes, Iterator[bytes]]:
    """Return the first block of a log, by which its kind is known, and all blocks.

    Args:
        source: the log.
    """
    data = source.read()
    first = next(data, b"")
    return first, chain((first,) if first else (), data)
