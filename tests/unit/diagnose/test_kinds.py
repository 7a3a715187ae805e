"""What an exception speaks for by its kind, its place and its job's Pythons; where a traceback begins."""

from __future__ import annotations

import pytest

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.logs import diagnose_lines


def traceback(text: str, file: str = "/home/ana/train.py", prefix: str = "") -> list[str]:
    return [
        f"{prefix}Traceback (most recent call last):",
        f'{prefix}  File "/home/ana/train.py", line 9, in <module>',
        f"{prefix}    main()",
        f'{prefix}  File "{file}", line 679, in f',
        f"{prefix}{text}",
    ]


def answer(*lines: str) -> Diagnosis:
    return diagnose_lines({"log": list(lines)})


@pytest.mark.parametrize(
    ("text", "file", "label"),
    [
        ("KeyError: 'DATA_ROOT'", "<frozen os>", "env-not-propagated"),
        ("KeyError: 'DATA_ROOT'", "/usr/lib/python3.9/os.py", "env-not-propagated"),
        ("KeyError: 'DATA_ROOT'", "/home/ana/settings.py", "application-error"),
        ("KeyError: 'LOCAL_RANK'", "<frozen os>", "application-error"),
        ("ValueError: unsupported pickle protocol: 5", "/x.py", "multi-python"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'pdsh'",
            "/usr/lib/python3.11/subprocess.py",
            "env-not-propagated",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'config.json'",
            "/home/ana/settings.py",
            "application-error",
        ),
        (
            "FileExistsError: [Errno 17] File exists: '/cache_1'",
            "/usr/lib/python3.11/multiprocessing/shared_memory.py",
            "stale-shm",
        ),
        (
            "FileExistsError: [Errno 17] File exists: '/out'",
            "/usr/lib/python3.11/os.py",
            "application-error",
        ),
        (
            "ModuleNotFoundError: No module named 'numpy._core._multiarray_umath'",
            "/x.py",
            "multi-python",
        ),
    ],
)
def test_the_place_of_an_exception_says_what_it_is_about(text: str, file: str, label: str) -> None:
    assert answer(*traceback(text, file)).label == label


def test_what_another_python_sent_is_refused_for_that() -> None:
    text = "_pickle.UnpicklingError: state is not a dictionary"
    own = traceback(text, "/opt/venv/lib/python3.11/site-packages/distributed/pickle.py")
    assert answer(*own).label == "application-error"
    other = "/opt/new/lib/python3.12/site-packages/distributed/utils.py:200: UserWarning: slow"
    mixed = answer(other, *own)
    assert mixed.label == "multi-python"
    assert "Python 3.11 and 3.12" in mixed.candidates[0].reason
    logic = traceback("ValueError: 3 rows", "/opt/venv/lib/python3.11/site-packages/x.py")
    assert answer(other, *logic).label == "application-error"


def test_a_traceback_behind_a_progress_bar_has_the_prefix_of_its_frames() -> None:
    text = "RuntimeError: [/gloo/tcp/pair.cc:537] Read error [10.0.0.2]:58072: Connection reset by peer"
    lines = traceback(text, prefix="box1: [rank0]: ")
    bar = "box1:  15%|█▌        | 30/200 [00:02<00:31,  5.45it/s]\r 16%|█▌  | 31/200 [00:03<00:34]"
    lines[0] = f"{bar}[rank0]: Traceback (most recent call last):"
    diagnosis = answer(*lines)
    assert diagnosis.label == "peer-died-timeout"
    assert diagnosis.lead is not None
    assert diagnosis.lead.text.startswith("RuntimeError")


def test_a_file_that_one_host_lacks_is_of_its_storage() -> None:
    lost = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'")
    suffers = traceback(
        "RuntimeError: [/gloo/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:612"
    )
    assert answer(*lost).label == "application-error"
    assert diagnose_lines({"a.log": lost, "b.log": suffers}).label == "storage-fault"
    assert diagnose_lines({"a.log": lost, "b.log": lost}).label == "application-error"
