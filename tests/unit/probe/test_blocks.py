"""The hosts file whose block is expected: only the rest of it comes back, and a claim is compared."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from remedy.probe import File, HostState, ProbeRequest, render_probe
from remedy.probe import files as probe_files
from remedy.probe.blocks import PATH, SECTION, marks_of
from remedy.probe.frames import read_sections
from remedy.values import Unknown
from tests.unit.probe.script_bench import run
from tests.unit.probe_data import NONCE, SHELLS, parse, recorded, replaced

BEGIN, END = b"# BEGIN of it (whole)\n", b"# END of it\n"
BLOCK = b"".join((BEGIN, b"10.0.0.1\tgpu01\n10.0.0.2\tgpu02\n", END))
OTHER = b"".join((BEGIN, b"10.0.0.1\tgpu01\n", END))
REST = b"127.0.0.1\tlocalhost\n"


def asked(
    path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, content: bytes
) -> tuple[HostState, str]:
    """Run the probe with another file in place of the hosts file."""
    path.write_bytes(content)
    monkeypatch.setattr(probe_files, "_HOSTS", str(path).encode())
    request = ProbeRequest(files=(str(path),), blocks=(OTHER, BLOCK))
    text = render_probe(request)
    assert f"path={PATH}\n" in text
    text = text.replace(f"path={PATH}\n", f"path={path}\n")
    # What comes later has nothing to do with files.
    assert "section file-attributes file_attributes\n" in text
    text = text.replace(
        "section file-attributes file_attributes\n",
        'section file-attributes file_attributes\nkill "$dog"; wait "$dog"; return\n',
    )
    state, stdout = run(request, shell, text=text)
    sections = read_sections("here", stdout, request.nonce)
    status = sections.by_name[SECTION].status
    assert (str(path) in sections.lines("file-contents")) == (status != "ok")
    return state, status


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("before", "block", "after", "status"),
    [
        (REST, BLOCK, b"::1 x\n", "ok"),
        (REST, OTHER, b"", "ok"),
        (b"", BLOCK, b"", "ok"),
        (b"\n\n", BLOCK, b"last", "ok"),
        (b"a\0b\n", BLOCK, b"\xff\r\n\0\n", "ok"),
        (REST, BLOCK[:-1], b"", "none"),  # the last line has no end
        (REST, BLOCK.replace(b"gpu02", b"gpu03"), b"", "none"),
        (REST, BLOCK.replace(b"\n", b"\r\n"), b"", "none"),
        (REST, BEGIN + END, b"", "none"),
        (BLOCK, BLOCK, b"", "none"),
        (REST + END, BLOCK, b"", "none"),
        (REST, END + BEGIN, b"", "none"),
        (REST, b"", b"", "none"),
    ],
)
def test_what_is_put_together_is_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    before: bytes,
    block: bytes,
    after: bytes,
    status: str,
) -> None:
    content = before + block + after
    state, printed = asked(tmp_path / "hosts", monkeypatch, shell, content)
    file = state.file(str(tmp_path / "hosts"))
    assert isinstance(file, File)
    assert (file.content, printed) == (content, status)


def heard(body: bytes, *, size: int, status: str = "ok") -> HostState:
    """Return the state of a host that sent this for its hosts file, and no lines of it."""
    answer = replaced(recorded("lab-idle"), "file-facts", f"81a4 0 0 {size} 1 1 1 {PATH}")
    answer = replaced(answer, "file-contents", b"")
    request = ProbeRequest(nonce=NONCE, blocks=(BLOCK, OTHER))
    return parse(replaced(answer, SECTION, body, status), request)


def claim(rest: bytes, block: bytes, whole: bytes, first: object = 2) -> bytes:
    digests = (hashlib.sha256(part).hexdigest() for part in (block, whole))
    return f"{first} {' '.join(digests)}\n".encode() + rest


WHOLE = REST + BLOCK


def test_the_file_of_a_host_that_has_the_block_is_the_same_object_for_all() -> None:
    files = [heard(claim(REST, BLOCK, WHOLE), size=len(WHOLE)).file(PATH) for _ in range(2)]
    assert all(isinstance(file, File) and file.content == WHOLE for file in files)
    first, second = (file.content for file in files if isinstance(file, File))
    assert first is second


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (claim(REST, BLOCK, WHOLE + b"\n"), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE), len(WHOLE) + 1),
        (claim(REST + b"x\n", BLOCK, WHOLE), len(WHOLE)),
        (claim(REST, OTHER, WHOLE), len(WHOLE)),
        (claim(REST, b"no block that was asked for", WHOLE), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE, 1), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE, 3), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE, 0), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE, "9" * 5000), len(WHOLE)),
        (claim(REST, BLOCK, WHOLE, 9_999_999), len(WHOLE)),
        (b"", len(WHOLE)),
        (REST, len(WHOLE)),
    ],
)
def test_a_claim_that_does_not_hold_leaves_the_file_unknown(body: bytes, size: int) -> None:
    file = heard(body, size=size).file(PATH)
    assert isinstance(file, Unknown)
    assert "it changed meanwhile" in file.reason


def test_without_the_section_the_file_is_unknown_and_never_empty() -> None:
    for status in ("late", "timeout", "failed:1"):
        assert isinstance(heard(b"", size=0, status=status).file(PATH), Unknown)
    cut = recorded("lab-idle")
    cut = cut[: cut.index(f"@{NONCE} end file-contents".encode())]
    file = parse(cut, ProbeRequest(nonce=NONCE, blocks=(BLOCK,))).file(PATH)
    assert isinstance(file, Unknown)


def test_blocks_share_their_marks() -> None:
    assert marks_of((BLOCK, OTHER, BEGIN + END)) == ("# BEGIN of it (whole)", "# END of it")
    for wrong in ((BLOCK, b"# other\n# END of it\n"), (b"",), (b"one line\n",), (BLOCK[:-1],)):
        with pytest.raises(ValueError, match="block"):
            marks_of(wrong)
