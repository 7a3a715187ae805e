"""A run with something switched off: that it went well proves no health, and shows what is wrong."""

from __future__ import annotations

from remedy.diagnose.logs import diagnose_lines

FAILED = [
    "$ ./build/all_reduce_perf -b 8M -e 128M -g 2",
    "vm:3377:3391 [0] transport/p2p.cc:288 NCCL WARN Cuda failure 'operation not supported'",
    "vm: Test NCCL failure common.cu:958 'unhandled cuda error'",
]
WENT_WELL = [
    "     8388608       2097152     float     sum      -1   2231.4    3.76    3.76      0",
    "    16777216       4194304     float     sum      -1   4402.6    3.81    3.81      0",
    "# Out of bounds values : 0 OK",
    "# Avg bus bandwidth    : 3.80432",
]
TRIAL = "$ NCCL_P2P_DISABLE=1 ./build/all_reduce_perf -b 8M -e 128M -g 2"


def test_what_helped_is_what_is_wrong() -> None:
    found = diagnose_lines({"log": [*FAILED, TRIAL, *WENT_WELL]})
    assert found.label == "p2p-acs-iommu"
    assert any("trial with NCCL_P2P_DISABLE=1" in note for note in found.notes)


def test_a_setting_is_no_trial_where_nothing_failed_before() -> None:
    found = diagnose_lines({"log": [TRIAL, *WENT_WELL]})
    assert found.label == "healthy"
    assert not any("trial" in note for note in found.notes)


def test_what_stands_below_a_trial_counts() -> None:
    below = [
        "$ dmesg -T | tail -1",
        "[Wed Apr 10 11:52:08 2024] nvidia 0000:25:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0041]",
    ]
    alone = diagnose_lines({"log": [*FAILED, TRIAL, *WENT_WELL]})
    found = diagnose_lines({"log": [*FAILED, TRIAL, *WENT_WELL, *below]})
    assert found.label == "p2p-acs-iommu"
    assert found.certainty > alone.certainty


def test_a_trial_that_failed_too_is_read_as_the_others() -> None:
    full = "OSError: [Errno 28] No space left on device: '/ckpt/a'"
    found = diagnose_lines({"log": [*FAILED, TRIAL, *FAILED[1:], full]})
    assert not any("trial" in note for note in found.notes)
    assert "disk-full" in {candidate.label for candidate in found.candidates}


def test_form_feeds_and_progress_bars_move_no_line() -> None:
    bars = ["0%|  | 0/9\r50%|  | 5/9\x0c\x0b\u2028"] * 4
    found = diagnose_lines({"log": [*bars, *FAILED, *bars, TRIAL, *WENT_WELL]})
    assert found.label == "p2p-acs-iommu"
