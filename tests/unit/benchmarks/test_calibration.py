"""How often each word is right is counted once with all that is known, and again without what led."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.diagnosing import calibration

FULL = "OSError: [Errno 28] No space left on device: '/ckpt/model.pt'"
TAKEN = "RuntimeError: port: 29500 already in use"


def written(root: Path, label: str) -> Path:
    folder = root / "recorded"
    folder.mkdir()
    (folder / "full.log").write_text(
        f"step 1 loss 2.1\nstep 2 loss 2.0\n{FULL}\n", encoding="utf-8"
    )
    (folder / "index.tsv").write_text(
        f"file\tlabel\tsecondary\nfull.log\t{label}\t\n", encoding="utf-8"
    )
    (root / "excerpts").mkdir()
    rows = [
        {
            "label": "master-port-in-use",
            "secondary": "disk-full; host-oom",
            "text": f"{TAKEN}\n{FULL}",
        }
    ]
    text = "\n".join(map(json.dumps, rows))
    (root / "excerpts" / "few.jsonl").write_text(text, encoding="utf-8")
    return root


def test_logs_and_excerpts_are_read_with_all_labels_that_are_right(tmp_path: Path) -> None:
    cases = list(calibration.cases(written(tmp_path, "disk-full")))
    assert [(case.name, set(case.accepted)) for case in cases] == [
        ("recorded/full.log", {"disk-full"}),
        ("excerpts/few.jsonl:1", {"master-port-in-use", "disk-full", "host-oom"}),
    ]


def test_a_right_answer_counts_and_what_led_is_taken_away(tmp_path: Path) -> None:
    figures = calibration.measure(written(tmp_path, "disk-full"))
    assert figures["logs"] == 2
    assert figures["taken"]["0"]["certain"] == [2, 2]
    assert figures["taken"]["0"]["wrong"] == []
    # Without the port, the disk is what is left of the second log; nothing is left of the first.
    assert figures["taken"]["1"]["certain"] == [1, 1]
    assert calibration.good_enough(figures)
    assert "certain" in calibration.text(figures)


def test_a_wrong_answer_called_certain_is_named_and_not_good_enough(tmp_path: Path) -> None:
    figures = calibration.measure(written(tmp_path, "stale-shm"))
    assert figures["taken"]["0"]["certain"] == [1, 2]
    assert [row[0] for row in figures["taken"]["0"]["wrong"]] == ["disk-full"]
    assert not calibration.good_enough(figures)
    assert "certain and wrong with 0 taken away: disk-full" in calibration.text(figures)
