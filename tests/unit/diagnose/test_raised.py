"""Exceptions: what stands below one is not always its message, and its code can say what it was about."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines


def test_what_a_supervisor_says_below_an_exception_is_none_of_its_message() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 29, in <module>',
        "    os.makedirs(FLAGS.ckpt_dir, exist_ok=True)",
        "AttributeError: ckpt_dir",
        "slurmstepd: error: *** JOB 2057 ON gpu04 CANCELLED AT 2022-11-07T11:30:22 DUE TO TIME LIMIT ***",
    ]
    diagnosis = diagnose_lines({"log": lines})
    assert diagnosis.label == "application-error"
    assert diagnosis.lead is not None
    assert diagnosis.lead.line == 4


@pytest.mark.parametrize(
    ("code", "label"),
    [
        (
            "tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], 'GPU')",
            "device-visibility",
        ),
        ("device = args.gpu_devices[args.local_rank]", "device-visibility"),
        ("batch = batches[rank]", "application-error"),
        ("name = names[len(devices)]", "application-error"),
    ],
)
def test_a_list_of_devices_that_ends_before_the_rank(code: str, label: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 62, in <module>',
        f"    {code}",
        "IndexError: list index out of range",
    ]
    assert diagnose_lines({"log": lines}).label == label
