"""Folding loses no host, and what is shown once can be unfolded to what each host has."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from remedy.report.folding import (
    Fold,
    Specimen,
    Words,
    alike,
    blurred,
    by_text,
    differs,
    folded_text,
    own_words,
)

HOSTS = tuple(f"gpu{n}" for n in range(1, 13))
ADDRESSES = {host: (f"10.0.0.{n}", f"192.168.0.{n}") for n, host in enumerate(HOSTS, 1)}
WORDS = own_words(HOSTS, ADDRESSES)
# Texts as remedies write them, with a host's own words in them, and those of others.
PIECES = st.sampled_from(
    ("", "x", "/etc/hosts", "{0}", "{2}", "{3}", "{0}.example.org", "gpu1", "10.0.0.1", "gpu11", "\0", "\x000")
)  # fmt: skip
TEMPLATES = st.lists(st.lists(PIECES, min_size=1, max_size=4), min_size=1, max_size=3)


def text_of(template: list[str], words: tuple[str, ...]) -> str:
    return " ".join(piece.format(*words) if "{" in piece else piece for piece in template)


@st.composite
def specimens(draw: st.DrawFn) -> list[Specimen[int]]:
    templates = draw(TEMPLATES)
    chosen = draw(st.lists(st.sampled_from(HOSTS), max_size=20))
    return [
        Specimen(
            number,
            host,
            (draw(st.booleans()),),
            (
                text_of(draw(st.sampled_from(templates)), tuple(WORDS[host])),
                "all of them: gpu1, gpu2",
            ),
        )
        for number, host in enumerate(chosen)
    ]


def unfolded(fold: Fold[int], words: Words) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return what a reader makes of a fold: the first one's texts, with each host's own words."""
    first = fold.specimens[0]
    result = []
    for specimen in fold.specimens:
        texts = first.texts
        if not fold.is_same:
            texts = tuple(
                text if text in specimen.texts
                else filled(blurred(text, words[first.host]), words[specimen.host])
                for text in first.texts
            )  # fmt: skip
        result.append((specimen.item, specimen.host, texts))
    return result


def filled(text: str, words: Sequence[str]) -> str:
    for number, word in enumerate(words):
        text = text.replace(f"\0{number}", word)
    return text.replace("\0e", "\0")


@given(specimens())
def test_unfolding_gives_what_each_host_has(every: list[Specimen[int]]) -> None:
    folds = alike(every, WORDS)
    result = sorted(item for fold in folds for item in unfolded(fold, WORDS))
    assert result == sorted((s.item, s.host, s.texts) for s in every)
    assert {host for fold in folds for host in fold.hosts} == {s.host for s in every}


@given(specimens())
def test_no_two_folds_read_the_same(every: list[Specimen[int]]) -> None:
    folds = alike(every, WORDS)
    heads = [(fold.specimens[0].shape, fold.specimens[0].texts) for fold in folds]
    assert len(set(heads)) == len(heads)


def test_ones_own_words_stand_by_themselves() -> None:
    words = WORDS["gpu1"]
    for text in ("gpu11", "gpu1-ib", "my.gpu1", "10.0.0.11", "10.0.0.1-10.0.0.9", "110.0.0.1"):
        assert blurred(text, words) == text
    for text in ("gpu1", "'gpu1'", "gpu1:29500", "gpu1.example.org", "/srv/gpu1/x", "10.0.0.1/24"):
        assert blurred(text, words) != text


def test_a_text_that_hosts_share_is_compared_as_it_is() -> None:
    every = [Specimen(n, host, (), ("lacks gpu1, gpu2, gpu3",)) for n, host in enumerate(HOSTS)]
    (fold,) = alike(every, WORDS)
    assert fold.is_same
    assert fold.hosts == HOSTS


def test_what_names_another_host_is_not_folded() -> None:
    every = [
        Specimen(0, "gpu1", (), ("sends to gpu1",)),
        Specimen(1, "gpu2", (), ("sends to gpu1 ",)),
    ]
    assert len(alike(every, WORDS)) == 2


def test_texts_about_hosts_are_told_once() -> None:
    texts = [(host, f"the journal of {host} is cut") for host in HOSTS] + [("gpu3", "and more")]
    assert by_text(texts) == [
        ("gpu[1-12]", "the journal of gpu[1-12] is cut"),
        ("gpu3", "and more"),
    ]


def one_of(words: Words, template: str) -> tuple[Fold[str], str]:
    """Return the one group of a text of all hosts, and the text as it is of all of them."""
    parts = [
        Specimen(host, host, (), ("same", template.format(*own))) for host, own in words.items()
    ]
    (group,) = alike(parts, words)
    assert group.hosts == tuple(words)
    assert folded_text(group, 0, words) == "same"
    assert differs(group, [1])
    assert not differs(group, [0])
    return group, folded_text(group, 1, words)


def test_a_text_of_all_hosts_has_their_names_and_addresses_folded() -> None:
    _, text = one_of(WORDS, "set the name to {0!r}, at {2}:22 and {3}/24, not gpu99 or \0e")
    assert text == (
        "set the name to 'gpu[1-12]', at 10.0.0.[1-12]:22 and 192.168.0.[1-12]/24, not gpu99 or \0e"
    )
    names = own_words(("a1.example.org", "a2.example.org"), {})
    assert one_of(names, "{1}, that is {0}")[1] == "a[1-2], that is a[1-2].example.org"


def test_names_that_do_not_fold_have_a_word_in_their_place() -> None:
    hosts = ["".join(pair) for pair in zip("abcdefghijklmnop", "ponmlkjihgfedcba", strict=True)]
    words = own_words(hosts, {host: (f"fd{n}::1",) for n, host in enumerate(hosts, 10)})
    long = own_words([host * 4 for host in hosts], {})
    assert one_of(long, "name it {0}")[1] == "name it HOST"
    assert one_of(own_words(("a1.x", "b7.y"), {}), "it is {1}")[1] == "it is a1,b7"
    assert one_of(words, "name it {0}")[1].startswith("name it ap,bo,")


@given(specimens())
def test_a_text_that_differs_names_every_host_of_its_group(every: list[Specimen[int]]) -> None:
    for group in alike(every, WORDS):
        text = folded_text(group, 0, WORDS)
        assert text == group.specimens[0].texts[0] or differs(group, [0])
        assert folded_text(group, 1, WORDS) == "all of them: gpu1, gpu2"
