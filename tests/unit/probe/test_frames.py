"""The frame around the sections: complete, cut off, forged, foreign, and plain noise."""

from __future__ import annotations

import base64
import gzip
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import ProbeError
from remedy.probe import HostState, frames, parse_probe
from remedy.probe.frames import read_sections
from remedy.values import Unknown
from tests.unit.probe_data import (
    NONCE,
    RECORDED,
    REQUEST,
    packed,
    parse,
    recorded,
    replaced,
    section,
    state,
)

SECTIONS = tuple(read_sections("h", packed(recorded("lab-busy")), NONCE).by_name)
GROUPS = (
    "clock", "session", "kernel", "mentions", "network", "listeners", "units", "mounts", "space", "ipc",
    "rdma", "limits", "environment", "software",
)  # fmt: skip


def test_every_section_of_the_script_is_in_a_recorded_answer() -> None:
    script = (files("remedy.probe") / "host" / "run.sh").read_text(encoding="utf-8")
    asked = re.findall(r"^ +section ([a-z0-9-]+) ", script, re.MULTILINE)
    # These came later; tests/lab/test_orphans.py and tests/hostile/test_homes.py have them from hosts.
    later = {"process-outputs", "guest-contents"}
    recorded_today = [name for name in asked if name not in later]
    # The probe had this when the answers were recorded.
    gone = {"ascend"}
    assert sorted(recorded_today) == sorted(name for name in SECTIONS if name not in gone)
    assert state("lab-busy").complete


def test_noise_around_the_answer_is_passed_over() -> None:
    noisy = "Welcome to gpu01!\n" + packed(recorded("lab-idle")) + "logout\n"
    assert parse_probe("gpu01", noisy, REQUEST) == state("lab-idle")


def test_carriage_returns_and_line_breaks_do_not_matter() -> None:
    lines = packed(recorded("lab-idle")).split("\n")
    wrapped = [line[at : at + 76] for line in lines for at in range(0, max(len(line), 1), 76)]
    assert parse_probe("gpu01", "\r\n".join(wrapped), REQUEST) == state("lab-idle")


def packed_by_gzip(body: bytes) -> str:
    letters = base64.b64encode(gzip.compress(body, 1)).decode()
    return f"\nremedy-probe {NONCE} gzip\n{letters}\nremedy-probe {NONCE} end\n"


def test_what_gzip_packed_is_read() -> None:
    found = read_sections("h", packed_by_gzip(recorded("lab-idle")), NONCE)
    assert found.complete
    assert found.by_name == read_sections("h", packed(recorded("lab-idle")), NONCE).by_name


def test_of_a_torn_or_damaged_pack_the_part_before_is_read() -> None:
    whole = packed_by_gzip(recorded("lab-idle"))
    sections = set(read_sections("h", whole, NONCE).by_name)
    for torn in (whole[: len(whole) // 2], whole[: len(whole) // 2] + "AAAA" * 99 + whole[-90:]):
        some = set(read_sections("h", torn, NONCE).by_name)
        assert some
        assert some < sections


@given(st.data())
def test_a_whole_pack_is_read_at_once_as_it_would_be_piece_by_piece(data: st.DataObject) -> None:
    body = data.draw(st.binary(max_size=300))
    letters = base64.b64encode(data.draw(st.sampled_from([body, gzip.compress(body, 1)]))).decode()
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(letters)))
        put = data.draw(st.sampled_from(["", "=", "==", "A", "\n", "\r\n", " ", "*", "\u00e9"]))
        letters = letters[:at] + put + letters[at + data.draw(st.integers(0, 2)) :]
    at_once = frames._whole(letters.replace("\n", ""))
    slowly = frames._as_far_as_whole(letters.translate(frames._BLANKS))
    assert at_once in (None, slowly)
    assert frames._unpacked(slowly) == frames._as_far_as_unpacked(slowly)


def test_lines_belong_to_their_path_also_where_paths_alternate_or_are_missing() -> None:
    pci = "/sys/bus/pci/devices/0000:00:1f.0/vendor"
    body = f"/a:1\n{pci}:0x1\n:lost\n/b\n/a:2:3\n\n{pci}:0x2\n/sys/bus/pci/devices/0000:x\n/b:"
    assert frames.by_path(body.encode()) == {
        "/a": ["1", "2:3"],
        pci: ["0x1", "0x2"],
        "/sys/bus/pci/devices/0000": ["x"],
        "/b": [""],
    }


def test_a_pack_that_unpacks_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST", 1_000_000)
    body = recorded("lab-idle") + b"\n" + bytes(50_000_000)
    found = read_sections("h", packed_by_gzip(body), NONCE)
    assert found.by_name["clock"].status == "ok"


def test_hexadecimal_is_read_where_there_is_no_base64() -> None:
    digits = recorded("lab-idle").hex(" ")
    stdout = f"\nremedy-probe {NONCE} hex\n {digits}\n\nremedy-probe {NONCE} end\n"
    assert parse_probe("gpu01", stdout, REQUEST) == state("lab-idle")


@pytest.mark.parametrize(
    "stdout", ["", "sh: 1: syntax error\n", f"remedy-probe {NONCE} base64\n", "\x00\udcff"]
)
def test_no_section_at_all_is_an_error_that_says_what_was_printed(stdout: str) -> None:
    with pytest.raises(ProbeError) as caught:
        parse_probe("gpu01", stdout, REQUEST)
    assert "gpu01" in caught.value.message
    assert caught.value.next_step


def test_the_answer_of_another_run_is_no_answer() -> None:
    with pytest.raises(ProbeError):
        parse_probe("gpu01", packed(recorded("lab-idle"), nonce="1" * 32), REQUEST)
    with pytest.raises(ProbeError):
        parse_probe("gpu01", packed(section("clock", "1.0", nonce="1" * 32)), REQUEST)


def test_a_section_cannot_be_ended_or_begun_from_inside() -> None:
    inside = f"x@{NONCE} end kernel 1.0 ok \n@{'1' * 32} end kernel 1.0 ok \n@{NONCE[:-1]} begin kernel 1.0\n"
    found = read_sections("h", packed(section("kernel", inside)), NONCE).by_name
    assert found["kernel"].body == inside.encode()
    assert list(found) == ["kernel"]


@given(st.binary(max_size=200))
def test_any_content_comes_through_as_it_is(content: bytes) -> None:
    found = read_sections("h", packed(section("a", content) + section("b", content)), NONCE).by_name
    assert [found["a"].body, found["b"].body] == [content, content]


@given(st.data())
def test_an_answer_that_is_cut_off_tells_what_it_told(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(RECORDED))
    stdout = packed(recorded(name))
    cut = stdout[: data.draw(st.integers(0, len(stdout)))]
    try:
        found = parse_probe("gpu01", cut, REQUEST)
    except ProbeError:
        return
    whole = state(name)
    for group in GROUPS:
        value = getattr(found, group)
        assert isinstance(value, Unknown) or value == getattr(whole, group), group
    for path, file in found.files.items():
        assert isinstance(file, Unknown) or file == whole.files[path]


@given(st.text(max_size=400))
def test_any_text_is_an_answer_or_an_error(text: str) -> None:
    for stdout in (
        text,
        f"remedy-probe {NONCE} base64\n{text}",
        f"remedy-probe {NONCE} hex\n{text}",
    ):
        with pytest.raises(ProbeError):
            parse_probe("gpu01", stdout, REQUEST)


@given(
    st.sampled_from(SECTIONS),
    st.one_of(st.binary(max_size=300), st.text(alphabet='[]{}":,0 1ab/\n-', max_size=200)),
    st.sampled_from(["ok", "none", "late", "timeout", "missing", "failed:3", "nonsense"]),
)
def test_a_broken_section_never_raises(name: str, content: bytes | str, status: str) -> None:
    found = parse(replaced(recorded("lab-busy"), name, content, status, "for a reason"))
    assert isinstance(found, HostState)


@given(st.data())
def test_damage_inside_a_section_never_raises(data: st.DataObject) -> None:
    body = bytearray(recorded("lab-busy"))
    for _ in range(data.draw(st.integers(1, 20))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=8))
    assert isinstance(parse(bytes(body)), HostState)


def test_a_broken_section_costs_only_itself() -> None:
    whole = state("lab-busy")
    for name, groups in {
        "listeners": {"listeners"},
        "units": {"units"},
        "ip": {"network"},
        "software": {"software"},
        "names": {"names"},
        "environment": {"environment"},
    }.items():
        found = parse(
            replaced(recorded("lab-busy"), name, b"\xff\x00 [{ nonsense", "failed:9", "it broke")
        )
        for group in GROUPS:
            same = getattr(found, group) == getattr(whole, group)
            assert same != (group in groups), (name, group)


@pytest.mark.parametrize(
    ("status", "detail", "reason"),
    [
        ("late", "", "time was up"),
        ("timeout", "", "did not answer in time"),
        ("missing", "ip (iproute2) is not installed", "not installed"),
        ("failed:2", "Operation not permitted", "not permitted"),
        ("failed:2", "", "exit status 2"),
    ],
)
def test_the_reason_of_an_unknown_is_told(status: str, detail: str, reason: str) -> None:
    network = parse(replaced(recorded("lab-idle"), "ip", "", status, detail)).network
    assert isinstance(network, Unknown)
    assert reason in network.reason
