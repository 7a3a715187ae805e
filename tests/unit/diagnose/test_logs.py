"""Reading logs: compressed ones, what stands on a line beside its text, the literals that are looked for."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from remedy.diagnose import lines
from remedy.diagnose.advice import named
from remedy.diagnose.logs import diagnose_lines, diagnose_paths, diagnose_sources
from remedy.diagnose.scanner.engine import make_finder
from remedy.diagnose.scanner.gloo_ports import swapped
from remedy.diagnose.scanner.reader import Source, sources
from remedy.diagnose.scanner.windows import AROUND
from remedy.errors import UsageError

ERROR = b"NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000\n"
FILLER = b"step 12 of many, and nothing of note\n"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed_logs_are_read_by_their_first_bytes(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(compress(FILLER * 1000 + ERROR))
    found = diagnose_paths([log])
    assert found.label == "duplicate-gpu"
    assert found.lead is not None
    assert found.lead.line == 1001


def test_zstd(tmp_path: Path) -> None:
    log = tmp_path / "train.log.zst"
    log.write_bytes(zstandard.compress(FILLER + ERROR))
    assert diagnose_paths([log]).label == "duplicate-gpu"


def test_a_truncated_archive_gives_what_there_is(tmp_path: Path) -> None:
    log = tmp_path / "train.log.gz"
    packed = gzip.compress(ERROR + bytes(range(256)) * 4000, compresslevel=1)
    log.write_bytes(packed[: len(packed) // 2])
    found = diagnose_paths([log])
    assert found.label == "duplicate-gpu"
    assert any("read only in part" in note for note in found.notes)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    log = tmp_path / "train.log"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    log.write_bytes(
        (
            mark + "été\n" + ERROR.decode()
            if mark or encoding != "latin-1"
            else "été\n" + ERROR.decode()
        ).encode(encoding)
    )
    assert diagnose_paths([log]).label == "duplicate-gpu"


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "stderr.log").write_bytes(FILLER)
    (tmp_path / "weights.pt").write_bytes(ERROR)
    assert [source.name for source in sources([tmp_path])] == [f"{tmp_path.name}/0/stderr.log"]


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        sources([tmp_path / "no.log"])


@pytest.mark.parametrize("offset", [0, 1, AROUND - 40, AROUND, (1 << 20) - 40, (1 << 20) + 1])
def test_a_line_is_found_wherever_blocks_end(tmp_path: Path, offset: int) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"x" * offset + b"\n" + ERROR + FILLER * 40000)
    found = diagnose_paths([log])
    assert found.lead is not None
    assert (found.label, found.lead.line) == ("duplicate-gpu", 2)


def test_the_line_number_counts_over_blocks(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(FILLER * 100_000 + ERROR)
    found = diagnose_paths([log])
    assert found.lead is not None
    assert found.lead.line == 100_001


def test_colours_and_progress_bars() -> None:
    assert lines.clean(b"\x1b[31mRuntimeError\x1b[0m: x\x1b]8;;http://a\x07") == "RuntimeError: x"


def test_the_state_of_a_progress_bar_is_a_line_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"\r 10%|#\r 20%|##\r\x1b[A" + ERROR)
    found = diagnose_paths([log])
    assert found.lead is not None
    assert found.lead.text.startswith("NCCL WARN")


@pytest.mark.parametrize(
    ("text", "rank", "host", "rest"),
    [
        ("[rank3]: RuntimeError: x", 3, "", "RuntimeError: x"),
        ("[default1]:[rank5]: ValueError: x", 5, "", "ValueError: x"),
        ("[1,4]<stderr>:boom", 4, "", "boom"),
        ("7: boom", 7, "", "boom"),
        ("[pod/worker-2/pytorch] [rank2]: boom", 2, "worker-2", "boom"),
        ("2026-01-01T10:00:00.1Z stderr F boom", None, "", "boom"),
        ("gpu01:12:34 [2] NCCL WARN x", None, "gpu01", "gpu01:12:34 [2] NCCL WARN x"),
        ("[default1]:boom", None, "", "boom"),
        ("worker-1  | boom", None, "worker-1", "boom"),
        ("gpu07: boom", None, "gpu07", "boom"),
        ("RuntimeError: boom", None, "", "RuntimeError: boom"),
    ],
)
def test_prefixes(text: str, rank: int | None, host: str, rest: str) -> None:
    line = lines.split(text)
    assert (line.text, line.rank, line.host) == (rest, rank, host)


@pytest.mark.parametrize(
    ("text", "process"),
    [
        ("[rank3]: RuntimeError: x", 3),
        ("[default1]:[rank5]: ValueError: x", 5),
        ("[default1]: boom", "local 1"),
        ("gpu01:12:34 [2] NCCL WARN x", "local 2"),
        ("gpu01:12:34 [-1] NCCL WARN x", None),
        ("[rank3]: gpu01:12:34 [2] NCCL WARN x", 3),
        ("boom", None),
    ],
)
def test_processes_are_told_apart_without_a_rank(text: str, process: lines.Process) -> None:
    assert lines.split(text).process == process


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("log/workerlog.3", 3),
        ("msrun/worker_12.log", 12),
        ("default.bpdjev.6.log", 6),
        ("none_x/attempt_0/4/stderr.log", 4),
        ("train.log", None),
    ],
)
def test_the_rank_in_a_files_name(name: str, rank: int | None) -> None:
    assert lines.rank_of_file(name) == rank


def test_times_of_several_formats_compare() -> None:
    texts = (
        "2026-11-20 23:09:35,231 INFO",
        "W1120 23:09:36.231709687 socket.cpp",
        "[W1120 23:09:37.2 socket.cpp:207]",
        "EI0006: 2026-11-20-23:09:38.444.436 x",
        "Nov 20 23:09:39 gpu01 kernel: x",
        "  time      : 2026-11-20_23:09:40",
    )
    times = [lines.time_of(text) for text in texts]
    assert None not in times
    assert times == sorted(times, key=lambda time: time or 0)
    assert lines.time_of("no time at all") is None


def test_the_engine_finds_every_place_but_what_overlaps_and_names_that_too() -> None:
    texts = [b"alpha", b"beta gamma", b"gamma"]
    block = b"xx alpha yy beta gamma zz gamma alpha"
    find, held, across = make_finder(texts)
    assert list(find(block)) == [(0, 3), (1, 12), (2, 26), (0, 32)]
    assert held(b"yy beta gamma zz") == {1, 2}
    assert across(b"beta gamma", 7) == [(1, 0), (2, 5)]
    assert across(b"beta gamma", 5) == [(1, 0)]


@pytest.mark.parametrize("at", range(-60, 8, 4))
def test_a_text_is_found_wherever_blocks_end(at: int) -> None:
    before = b"".join(b"step %d loss 0.5\n" % number for number in range(3_000))
    line = b"NCCL WARN Bootstrap : no socket interface found\n"
    log = before + line + b"gave up\n" * 3
    end = len(before) + len(line) + at
    blocks = [log[: end - 40_000], log[end - 40_000 : end], log[end:]]
    diagnosis = diagnose_sources([Source("log", lambda: iter(blocks), len(log))])
    assert diagnosis.label == "wrong-interface"
    assert diagnosis.lead is not None
    assert diagnosis.lead.line == 3_001


def test_gloo_ports_are_put_right() -> None:
    assert swapped(14766) == 44601
    assert swapped(swapped(29500)) == 29500


FAILED = "OSError: [Errno 28] No space left on device: '/ckpt/a.pt'"


@pytest.mark.parametrize(
    ("name", "line", "rank", "host"),
    [
        ("torchrun.log", f"[rank3]: {FAILED}", 3, ""),
        ("torchrun-tee.log", f"[default3]:[rank11]: {FAILED}", 11, ""),
        ("none_1/attempt_0/3/stderr.log", FAILED, 3, ""),
        ("mpirun.log", f"[1,3]<stderr>:{FAILED}", 3, ""),
        ("srun.log", f"3: {FAILED}", 3, ""),
        ("msrun/worker_3.log", FAILED, 3, ""),
        ("log/workerlog.3", FAILED, 3, ""),
        ("log/default.kqzwty.3.log", FAILED, 3, ""),
        ("kubectl.log", f"[pod/worker-2/pytorch] [rank3]: {FAILED}", 3, "worker-2"),
        ("var/log/pods/0.log", f"2026-01-01T10:00:00.123Z stderr F [rank3]: {FAILED}", 3, ""),
        ("pdsh.log", f"gpu07: [rank3]: {FAILED}", 3, "gpu07"),
    ],
)
def test_every_launcher_tells_the_rank(
    tmp_path: Path, name: str, line: str, rank: int, host: str
) -> None:
    log = tmp_path / name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"starting\n{line}\n", encoding="utf-8")
    found = diagnose_paths([log])
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.rank, found.lead.host) == (rank, host)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "piped"
    file.write_bytes(compress(FILLER * 10 + ERROR))
    with file.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        found = diagnose_paths(["-"])
    assert found.label == "duplicate-gpu"
    assert found.lead is not None
    assert (found.lead.file, found.lead.line) == ("standard input", 11)


def test_what_a_folder_has_of_remedy_itself_is_no_log(tmp_path: Path) -> None:
    """The journal of an earlier verification would name the cause of that one."""
    for name in (
        ".remedy/journal.jsonl",
        ".git/logs",
        "red.html",
        ".hidden",
        "rank0.log",
        "a/rank1",
    ):
        (path := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n")
    names = [source.name for source in sources([tmp_path])]
    assert names == [f"{tmp_path.name}/a/rank1", f"{tmp_path.name}/rank0.log"]
    assert [source.name for source in sources([tmp_path / ".remedy"])] == [".remedy/journal.jsonl"]
    assert len(sources([tmp_path / "red.html"])) == 1  # who names a file means it


def test_a_folder_of_compressed_logs_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "rank0.log.gz").write_bytes(gzip.compress(FILLER * 5))
    (tmp_path / "rank1.log.zst").write_bytes(zstandard.compress(FILLER + FAILED.encode()))
    found = diagnose_paths([tmp_path])
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.rank, found.lead.line) == (1, 2)


def test_the_card_that_nccl_names_is_no_rank() -> None:
    warned = "gpu02:812:812 [0] NCCL WARN Connect to 10.0.0.9<41235> failed : Connection refused"
    lead = diagnose_lines({"log": [warned]}).lead
    assert lead is not None
    assert (lead.rank, lead.host) == (None, "gpu02")
    assert "rank" not in named(diagnose_lines({"log": [warned]}))


def test_a_number_on_a_host_is_called_local() -> None:
    found = diagnose_lines({"log": [f"[default3]: {FAILED}"]})
    assert found.lead is not None
    assert found.lead.rank is None
    assert "local rank 3" in named(found)
