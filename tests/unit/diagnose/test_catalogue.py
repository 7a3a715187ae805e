"""The catalogue keeps its promises: examples, near-misses, every cause, the texts of the source documents."""

from __future__ import annotations

import random
import re
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import from_regex

from benchmarks.diagnosing.ordinary import line
from remedy.diagnose.catalogue import CauseWeight, Symptom, catalogue, compiled, texts_of
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.scan import index
from remedy.diagnose.scanner.windows import REACH
from remedy.plan import all_causes

ENTRIES = catalogue()
HOPELESS = 10.0  # seconds of the processor; a good pattern takes a thousandth
IDS = [entry.id for entry in ENTRIES]

# Texts of the source documents, each with the answer that the document gives.
SEEDS = {
    "Init plugin so failed, ret = 1343225860": "hccl-rank-table",
    "进行HCCL分布式训练出错 `Init plugin so failed, ret = 1343225860`": "hccl-rank-table",
    "[ERROR] DEVICE [cuda_driver.cc:245] SetDevice] SetDevice for id:7 failed, ret[101], "
    "invalid device ordinal. Please make sure that the 'device_id' set in context": "device-visibility",
    "[CRITICAL] DISTRIBUTED [cluster_context.cc:130] InitNodeRole] Role name is invalid.": "application-error",
    "pml_ucx.c:175 Error: Failed to receive UCX worker address: Not found (-13)": "mpi-nic-mismatch",
    "pml_ucx.c:452 Error: Failed to resolve UCX endpoint for rank X": "mpi-nic-mismatch",
    "include/socket.h:403 NCCL WARN Connect to XXX failed: Network is unreachable": "network-unreachable",
    "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n...\n"
    "include/socket.h:403 NCCL WARN Connect to XXX failed: Connection refused": "ib-roce-mixed",
    'Ascend collective Error: "HcclCommInitRootInfo failed. | Error Number 2': "hccl-memory",
    "np_tensor can not be split by strategy!": "application-error",
    "RuntimeError: device memory not enough": "hccl-memory",
    "RuntimeError: DNS resolution failed: [Errno -2] Name or service not known. "
    "Please check whether the correct host name is input.": "hostname-unresolvable",
    "Call aclrtSetDevice failed, ret[107001]. Got device count[8] and device id[9], "
    "please check if device id is valid.": "duplicate-hostname",
    "RuntimeError: Communicator of group xxx inited: failed. Result: Init communicator for group xxx "
    "exception info: Failed to fetch the unique id of the collective lib from the meta server node. "
    "Maybe the root rank process of this group has exited": "peer-died-timeout",
    "Loading libgpu_collective.so failed. Many reasons could cause this:\n"
    "1.libgpu_collective.so is not installed.\n2.nccl is not installed or found.": "missing-library",
    "[W socket.cpp:601] [c10d] The IPv6 network addresses of (ece-a58489.austin.utexas.edu, 44685) cannot "
    "be retrieved (gai error: -2 - Name or service not known).": "hostname-unresolvable",
    "You are using GPU version Paddle, but your CUDA device is not set properly.": "missing-library",
    "OSError: (External) NCCL error(5), invalid usage.\n"
    "  [Hint: 'ncclInvalidUsage'. The call to NCCL is incorrect.]": "duplicate-gpu",
    "ExternalError: Nccl error(2), unhandled system error": "shm-too-small",
    "  torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
    "ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version "
    "2.19.3\n  ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
    "error.\n  Last error: \n": "firewall-ports",
}


def test_examples_match() -> None:
    wrong = [
        (entry.id, example)
        for entry in ENTRIES
        for example in entry.examples
        if not any(entry.match((text,), example) for text in example.splitlines())
    ]
    assert not wrong


@pytest.mark.parametrize("near_misses", [(), ("",), (" ",), ("a text",)])
def test_a_near_miss_is_an_ordinary_line(near_misses: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"near.miss"):
        Symptom(
            id="any",
            family="any",
            pattern="text",
            literals=("text",),
            causes=(CauseWeight(label="healthy", weight=0.5),),
            meaning="any.",
            source="any",
            examples=("a text",),
            near_misses=near_misses,
        )


def test_near_misses_do_not() -> None:
    assert [entry.id for entry in ENTRIES if not entry.near_misses] == []
    wrong = [
        (entry.id, text)
        for entry in ENTRIES
        for text in entry.near_misses
        if any(entry.match((part,), text) for part in text.splitlines())
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("line", "matches"),
    [
        ("bad links: 0, good links: 8", False),
        ('{"bad link": 0}', False),
        ("bad links = 0", False),
        ("bad links: 3, good links: 5", True),
        ("bad links: 0.5 % of all", True),
        ("bad links on rank: 0", True),
        ("bad link, exit code 0:9", True),
    ],
)
def test_a_counter_at_0_is_no_match(line: str, matches: bool) -> None:
    entry = Symptom(
        id="any",
        family="any",
        pattern="bad links?(?: on rank|, exit code)?",
        literals=("bad link",),
        causes=(CauseWeight(label="healthy", weight=0.5),),
        meaning="any.",
        source="any",
        examples=("bad links",),
        near_misses=("good links",),
    )
    assert (entry.match((line,)) is not None) == matches


def test_near_misses_are_tried() -> None:
    """A pattern is tried on lines with a literal alone. Where that is all of it, no such line can miss."""
    untried = [
        entry.id
        for entry in ENTRIES
        if not any(literal in text for text in entry.near_misses for literal in entry.literals)
        and not all(compiled(entry.pattern).search(literal) for literal in entry.literals)
    ]
    assert untried == []


def test_every_expression_compiles() -> None:
    """A log compiles those alone that it needs."""
    for entry in ENTRIES:
        of_causes = (text for cause in entry.causes for text in (cause.when, cause.unless))
        for text in (entry.pattern, entry.near, entry.unless, entry.extract, *of_causes):
            assert compiled(text), entry.id


def test_every_example_has_a_literal() -> None:
    for entry in ENTRIES:
        pattern = compiled(entry.pattern)
        matches = [match for example in entry.examples for match in pattern.finditer(example)]
        assert matches, entry.id
        for match in matches:
            assert any(literal in match[0] for literal in entry.literals), (entry.id, match[0])


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_every_text_that_a_pattern_matches_has_a_literal(entry: Symptom) -> None:
    """Else the scanner would never try the pattern on it. The texts are made from the pattern itself."""

    @settings(
        max_examples=settings().max_examples // 10 * len(entry.literals),
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(from_regex(compiled(entry.pattern)))
    def check(text: str) -> None:
        match = compiled(entry.pattern).search(text)
        assert match is not None
        assert any(literal in match[0] for literal in entry.literals), match[0]

    check()


def test_no_literal_holds_another() -> None:
    """A text with the longer one has the shorter one, too."""
    for entry in ENTRIES:
        assert len(set(entry.literals)) == len(entry.literals), entry.id
        pairs = [(a, b) for a in entry.literals for b in entry.literals if a in b and a != b]
        assert not pairs, entry.id


def test_every_entry_names_causes_that_there_are() -> None:
    """Some are those of remedies: the catalogue is read without them, so that they need not be imported."""
    named = {cause.label for entry in ENTRIES for cause in entry.causes}
    assert named <= set(all_causes())


def test_every_cause_has_an_entry() -> None:
    decided_otherwise = {"unknown", "healthy"}
    silent = {name for name, cause in all_causes().items() if cause.silent}
    missing = [
        label
        for label in sorted(set(all_causes()) - decided_otherwise - silent)
        if not any(entry.speaks_clearly_for(label) for entry in ENTRIES)
    ]
    assert not missing, (
        f"{', '.join(missing)}: no entry in remedy/diagnose/catalogue has a text that speaks for it; "
        "write one, or say in the cause's `silent` why no program prints one"
    )


def test_texts_of_a_cause() -> None:
    assert any("Duplicate GPU" in text for text in texts_of("duplicate-gpu"))
    assert texts_of("healthy") == ()


@pytest.mark.parametrize(("text", "label"), SEEDS.items(), ids=[text[:40] for text in SEEDS])
def test_texts_of_the_source_documents(text: str, label: str) -> None:
    assert diagnose_lines({"seed": text.splitlines()}).label == label


def test_no_literal_stands_in_ordinary_output() -> None:
    """Else the scanner would try it on every line, and give up before the line that matters."""
    texts = [line(n, random.Random(n)) for n in range(3000)]  # noqa: S311 - not for secrets
    block = "\n".join(texts).encode()
    ready = index()
    assert {ready.literals[number] for number, _ in ready.find(block)} == set()


def _worst_cases(entry: Symptom) -> list[str]:
    literals = sorted(entry.literals)
    cases = [literal * (2 * REACH // len(literal)) for literal in literals[:4]]
    cases += [(example.splitlines()[0] + " ") * 40 for example in entry.examples]
    cases += [example.splitlines()[0][:-1] * 40 + "\0" for example in entry.examples]
    cases += [
        literal + fill * REACH
        for literal in literals[:2]
        for fill in ("a", "1.", ": ", "(", "0:", " ")
    ]
    return [case[: 2 * REACH] for case in cases]


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_no_pattern_backtracks(entry: Symptom) -> None:
    """A line as long as the scanner shows a pattern is soon done with, whatever stands on it.

    Nothing is timed: a pattern that backtracks does not end, and is stopped (the matcher looks for signals).
    """
    before = signal.signal(signal.SIGVTALRM, _endless)
    try:
        for text in _worst_cases(entry):
            signal.setitimer(signal.ITIMER_VIRTUAL, HOPELESS)
            entry.match((text,), text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_a_pattern_that_backtracks_would_be_found() -> None:
    before = signal.signal(signal.SIGVTALRM, _endless)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.5)
        with pytest.raises(AssertionError, match="does not end"):
            re.search("(?:a+)+b", "a" * 60)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _endless(*_: object) -> None:
    raise AssertionError("the pattern does not end")


# What prints a text: a repository and a path in it, a manual page, a library or error table, or a document.
ORIGIN = re.compile(
    r"[\w.-]+/[\w.-]+:[\w.]|\w+\(\d\)|glibc:|remedy/|seed 00\d|CUDA runtime|CANN, error code"
    r"|NVIDIA Xid|nvidia-smi"
)


def test_an_entry_says_what_prints_it() -> None:
    for entry in ENTRIES:
        assert ORIGIN.search(entry.source), (entry.id, entry.source)
        assert "labels of the field" not in entry.source, entry.id
        assert "domain facts" not in entry.source, entry.id


def test_every_repository_is_in_the_table_of_what_was_read() -> None:
    table = (Path(__file__).parents[3] / "docs" / "catalogue.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([\w.-]+/[\w.-]+) \|", table, re.MULTILINE))
    named = {
        found[1]
        for entry in ENTRIES
        for part in entry.source.split(";")
        if (found := re.match(r"\s*([\w.-]+/[\w.-]+):", part))
    }
    assert named == listed
