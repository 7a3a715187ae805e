"""Records and documents: frozen and strict; what is not known is a value; equal values are one object."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from remedy.values import MOST_ALIKE, Document, Fact, Record, Unknown, once_alike, shared


class Sample(Record):
    """A record of this test."""

    number: int
    fact: Fact[str] = "known"


class Page(Document):
    """A document of this test."""

    number: int


@pytest.mark.parametrize("kind", [Sample, Page])
def test_values_are_frozen_and_of_their_types(kind: type[Sample] | type[Page]) -> None:
    value = kind(number=1)
    with pytest.raises(ValidationError):
        setattr(value, "number", 2)  # noqa: B010 - the types forbid it, and so does the value
    with pytest.raises(ValidationError):
        kind.model_validate({"number": "1"})


def test_a_record_refuses_what_it_does_not_know_and_a_document_keeps_it() -> None:
    with pytest.raises(ValidationError):
        Sample.model_validate({"number": 1, "later": 2})
    page = Page.model_validate({"number": 1, "later": 2})
    assert page.model_dump() == {"number": 1, "later": 2}


def test_what_is_not_known_is_neither_absent_nor_equal_to_a_value() -> None:
    value = Sample(number=1, fact=Unknown(reason="it timed out"))
    assert isinstance(value.fact, Unknown)
    again = Sample.model_validate_json(value.model_dump_json())
    assert again == value
    assert again != Sample(number=1, fact="it timed out")


def test_equal_values_are_one_object() -> None:
    made = shared(lambda number: [number])
    assert made(1) is made(1)
    assert made(1) is not made(2)


def test_a_function_is_asked_once_for_the_same_objects() -> None:
    calls: list[int] = []

    @once_alike
    def decide(table: list[int], scale: int = 1) -> int:
        calls.append(scale)
        return sum(table) * scale

    tables = [[number] for number in range(MOST_ALIKE + 1)]
    first, same_content = tables[0], [0]
    assert decide(first) == decide(first) == 0
    assert len(calls) == 1
    decide(same_content)  # an equal object is another
    assert len(calls) == 2
    assert decide(tables[3], scale=2) == 6
    for table in tables:
        decide(table)
    before = len(calls)
    decide(tables[-1])
    assert len(calls) == before
    decide(first)  # the oldest answer made room
    assert len(calls) == before + 1
