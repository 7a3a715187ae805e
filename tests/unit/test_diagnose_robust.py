"""Whatever a log holds: an answer, no traceback, and no time that grows with the square of a line."""

from __future__ import annotations

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remedy.diagnose import catalogue, diagnose_lines
from remedy.diagnose.judge import judge
from remedy.diagnose.reader import from_text
from remedy.diagnose.scan import index, scan

TEXTS = [example for entry in catalogue() for example in entry.examples]


def _label(data: bytes) -> str:
    return judge([scan(from_text("log", data), index())]).label


@given(st.binary(max_size=4000))
@settings(max_examples=60, deadline=None)
def test_bytes(data: bytes) -> None:
    assert _label(data)


@given(
    st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=60)), max_size=40),
    st.binary(max_size=9),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_texts_among_garbage(texts: list[str], garbage: bytes) -> None:
    assert _label(garbage.join(text.encode("utf-8", "replace") for text in texts))


@given(
    st.dictionaries(st.text(max_size=9), st.lists(st.sampled_from(TEXTS), max_size=6), max_size=5)
)
@settings(max_examples=40, deadline=None)
def test_many_logs(logs: dict[str, list[str]]) -> None:
    found = diagnose_lines(logs)
    assert found.document(remedy=None, command=None)["schema"] == "remedy.diagnosis/1"


def test_very_long_lines() -> None:
    for text in (
        "NCCL WARN ",
        "Connection refused ",
        "x",
        "Traceback (most recent call last)",
        "\x1b[",
        "[rank0]: ",
    ):
        data = (text * (10_000_000 // len(text))).encode()
        began = time.process_time()
        _label(data + b"\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000\n")
        assert time.process_time() - began < 20, text


def test_a_log_full_of_one_error() -> None:
    began = time.process_time()
    assert _label(b"connect() to 10.0.0.9:1024 failed: Connection refused\n" * 400_000)
    assert time.process_time() - began < 20
