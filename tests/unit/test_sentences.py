"""Sentences that differ only in names and amounts are one; any other difference is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.sentences import WIDTH, Sentence, as_one, by_sentence, differ, in_a_line, notes_folded

NAMES = frozenset({"gpu1", "gpu2", "gpu3", "node.example", "node"})


def one(*texts: tuple[str, str]) -> str:
    (pair,) = by_sentence(texts)
    return f"{pair[0]}: {pair[1]}"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("no answer within 9.1 s", "no answer within 12 s", "no answer within 9.1-12 s"),
        ("lacks 3 hosts", "lacks 3 hosts", "lacks 3 hosts"),
        ("calls itself gpu1", "calls itself gpu2", "calls itself gpu[1-2]"),
        ("gpu1.cluster is not known", "gpu2.cluster is not known", "gpu[1-2].cluster is not known"),
        ("held by process 12", "held by process 345", "held by process 12  (as for gpu1)"),
        ("from gpu2: no", "from gpu1: no", "from gpu2: no  (as for gpu1)"),
        ("gpu1 is at 10.0.0.1", "gpu2 is at 10.0.0.2", "gpu1 is at 10.0.0.1  (as for gpu1)"),
        (
            "gpu1 lost 2 links to gpu2",
            "gpu2 lost 9 links to gpu1",
            "gpu1 lost 2-9 links to gpu2  (as for gpu1)",
        ),
        ("at 10.0.0.1:22", "at 10.0.0.2:23", "at 10.0.0.1:22  (as for gpu1)"),
        ("refused on ports 1, 2, 3, ... there", "refused on port 9 there", "refused there"),
        ("on port 1: refused", "on ports 2, 3: refused", "refused"),
    ],
)
def test_sentences_that_are_alike_are_one(first: str, second: str, together: str) -> None:
    assert one(("gpu1", first), ("gpu2", second)) == f"gpu[1-2]: {together}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("exit code 1", "exit code 127"),
        ("refused", "no answer"),
        ("3 hosts", "three hosts"),
        ("calls itself 'a'", "calls itself 'b'"),
        ("gpu1 is there", "10.0.0.1 was there"),
    ],
)
def test_any_other_difference_is_kept(first: str, second: str) -> None:
    assert by_sentence([("gpu1", first), ("gpu2", second)]) == [("gpu1", first), ("gpu2", second)]


def test_a_name_with_and_without_its_domain_is_one_host() -> None:
    texts = [("a1.example", "a1 is late"), ("a2.example", "a2 is late")]
    assert by_sentence(texts) == [("a[1-2].example", "a[1-2] is late")]


WORDS = st.lists(
    st.sampled_from(
        ["gpu1", "gpu2", "gpu10", "7", "7.5", "s", "of", "10.0.0.1", ":", "port", "x", " "]
    ),
    max_size=12,
).map(" ".join)


@given(WORDS, st.sampled_from(sorted(NAMES)))
def test_a_sentence_by_itself_is_as_it_was(text: str, host: str) -> None:
    assert as_one([Sentence.of(host, text, NAMES)]) == text


@given(WORDS, WORDS)
def test_what_is_said_once_differs_in_nothing_or_says_of_whom_it_is(
    first: str, second: str
) -> None:
    alike = by_sentence([("gpu1", first), ("gpu2", second)])
    if len(alike) == 2:
        return
    ((hosts, text),) = alike
    assert hosts == "gpu[1-2]"
    pair = [Sentence.of("gpu1", first, NAMES), Sentence.of("gpu2", second, NAMES)]
    if not differ(pair) and first != second:
        assert "(as for" not in text


def test_notes_are_folded_by_the_host_that_they_begin_with() -> None:
    notes = ["gpu1: waits 3 s", "all is well: 3 hosts", "gpu2: waits 5 s", "all is well: 4 hosts"]
    assert notes_folded(notes) == [
        "gpu[1-2]: waits 3-5 s",
        "all is well: 3 hosts",
        "all is well: 4 hosts",
    ]


@given(st.text(max_size=300), st.text(max_size=150))
def test_a_line_has_an_end(text: str, names: str) -> None:
    assert len(in_a_line(names, text)) <= WIDTH + 200
