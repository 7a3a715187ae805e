"""Whatever a log holds: an answer, no traceback, and no time that grows with the square of a line."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.catalogue import Symptom, catalogue
from remedy.diagnose.judgement.decide import decide
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.reader import from_text
from remedy.diagnose.scanner.scan import PATIENCE, index, scan
from remedy.diagnose.scanner.windows import REACH

TEXTS = [example for entry in catalogue() for example in entry.examples]


def _label(data: bytes) -> str:
    return decide([scan(from_text("log", data), index())]).label


@given(st.binary(max_size=4000))
def test_bytes(data: bytes) -> None:
    assert _label(data)


@given(
    st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=60)), max_size=40),
    st.binary(max_size=9),
)
def test_texts_among_garbage(texts: list[str], garbage: bytes) -> None:
    assert _label(garbage.join(text.encode("utf-8", "replace") for text in texts))


@given(
    st.dictionaries(st.text(max_size=9), st.lists(st.sampled_from(TEXTS), max_size=6), max_size=5)
)
def test_many_logs(logs: dict[str, list[str]]) -> None:
    found = diagnose_lines(logs)
    assert found.document(remedy=None, command=None)["schema"] == "remedy.diagnosis/1"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each entry is tried, and on how many characters: what the time of a scan grows with."""
    counted: Counter[str] = Counter()
    match = Symptom.match

    def counting(self: Symptom, text: str, around: str = "") -> re.Match[str] | None:
        counted["times"] += 1
        counted["longest"] = max(counted["longest"], len(text))
        return match(self, text, around)

    monkeypatch.setattr(Symptom, "match", counting)
    return counted


@pytest.mark.parametrize(
    "text",
    [
        "NCCL WARN ",
        "Connection refused ",
        "x",
        "Traceback (most recent call last)",
        "\x1b[",
        "[rank0]: ",
    ],
)
def test_a_line_of_ten_megabytes(text: str, tried: Counter[str]) -> None:
    data = (text * (10_000_000 // len(text))).encode()
    end = b"\nNCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000\n"
    found = decide([scan(from_text("log", data + end), index())])
    assert "duplicate-gpu" in [one.label for one in found.candidates]
    assert tried["longest"] <= 2 * REACH
    assert tried["times"] <= 20 * PATIENCE


def test_a_log_full_of_one_error(tried: Counter[str]) -> None:
    line = b"connect() to 10.0.0.9:1024 failed: Connection refused\n"
    assert _label(line * 400_000) == "firewall-ports"
    assert tried["times"] <= 20 * PATIENCE


@pytest.mark.parametrize("encoding", ["latin-1", "gb18030", "shift-jis", "utf-8"])
def test_mixed_encodings(encoding: str) -> None:
    before = "训练失败, 端口被占用\n".encode("gb18030") + "错误\n".encode() + b"\xff\xfe\x80\n"
    line = "OSError: [Errno 98] Address already in use\n".encode(encoding)
    assert _label(before + line) == "master-port-in-use"


def test_colours_and_progress_bars_around_the_error() -> None:
    bar = b"".join(
        b"\r\x1b[32m%3d%%\x1b[0m|####  | %d/100 [00:01<00:03]" % (n, n) for n in range(100)
    )
    line = b"\r\x1b[K\x1b[1;31mOSError\x1b[0m: [Errno 28] No space left on device: '/ckpt/a.pt'\n"
    found = decide([scan(from_text("log", bar + line), index())])
    assert found.label == "disk-full"
    assert found.lead is not None
    assert found.lead.text.startswith("OSError: [Errno 28]")


def test_binary_between_lines() -> None:
    line = b"\nOSError: [Errno 98] Address already in use\n"
    assert (
        _label(bytes(range(256)) * 5000 + line + bytes(range(256)) * 5000) == "master-port-in-use"
    )
