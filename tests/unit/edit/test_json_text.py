"""Editing JSON text: one key changes, every other byte stays."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.edit.json_text import BOM, JsonTextError, read_members, set_member

KEY = "default-shm-size"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b'{\n    "default-shm-size": "2g"\n}\n'),
        (b" \n", b'{\n    "default-shm-size": "2g"\n}\n'),
        (b"{}", b'{\n    "default-shm-size": "2g"\n}'),
        (b"{ }\n", b'{\n    "default-shm-size": "2g"\n}\n'),
        (b'{"a": 1}', b'{"a": 1,"default-shm-size": "2g"}'),
        (b'{ "a":1, "b":[ {} ] }\n', b'{ "a":1, "b":[ {} ], "default-shm-size":"2g" }\n'),
        (b'{\r\n\t"a": 1\r\n}', b'{\r\n\t"a": 1,\r\n\t"default-shm-size": "2g"\r\n}'),
        (b'{"default-shm-size" :\n "64m" ,"z":1}', b'{"default-shm-size" :\n "2g" ,"z":1}'),
        (
            b'{"x": {"default-shm-size": "1"}}',
            b'{"x": {"default-shm-size": "1"},"default-shm-size": "2g"}',
        ),
        (
            b'{"default-shm-size": "1", "default-shm-size": 5}',  # Go takes the last
            b'{"default-shm-size": "1", "default-shm-size": "2g"}',
        ),
        (
            BOM + b'{"a": "\xc3\xa9\\u00e9"}',
            BOM + b'{"a": "\xc3\xa9\\u00e9","default-shm-size": "2g"}',
        ),
    ],
)
def test_only_the_key_changes(before: bytes, after: bytes) -> None:
    assert set_member(before, KEY, "2g") == after
    assert set_member(after, KEY, "2g") == after
    assert read_members(after)[KEY] == "2g"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,}', "line 1"),
        (b'{\n "a": 1\n "b": 2}', "line 3: Expecting ',' delimiter"),
        (b"[]", "a list, not an object"),
        (b"null", "NoneType"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b'{"a": 1} x', "Extra data"),
        (b"// comment\n{}", "line 1"),
        (b'{"a":' + b"[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_in_words(content: bytes, words: str) -> None:
    for refused in (lambda: read_members(content), lambda: set_member(content, KEY, "2g")):
        with pytest.raises(JsonTextError, match=words):
            refused()


keys = st.one_of(st.just(KEY), st.text(alphabet=string.ascii_letters + '"\\é\n', max_size=5))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(keys, values, max_size=5),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["", "\n", " \r\n"]),
)
def test_any_object_keeps_everything_else(
    document: dict[str, object], indent: int | str | None, ascii_only: bool, end: str
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only) + end
    edited = set_member(text.encode("utf-8", "surrogatepass"), KEY, "2g")
    assert json.loads(edited) == {**document, KEY: "2g"}
    assert list(json.loads(edited)) == list({**document, KEY: "2g"})
    assert set_member(edited, KEY, "2g") == edited
