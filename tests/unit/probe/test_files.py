"""Files in the answer: exact bytes, links, what is not there and what could not be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.probe import File, HostState, ProbeRequest
from remedy.values import Unknown
from tests.unit.probe_data import NONCE, parse, section, state

REQUEST = ProbeRequest(nonce=NONCE, files=("/a", "/b", "/c"))


def answer(contents: dict[str, bytes], *, lines: bytes | None = None, **others: str) -> HostState:
    """Return the state of a host with these files, printed as stat(1) and grep(1) print them."""
    facts = "".join(f"81a4 0 0 {len(content)} 1 2 3 {path}\n" for path, content in contents.items())
    if lines is None:
        lines = b"".join(grep(path, content) for path, content in contents.items())
    body = section("file-facts", others.pop("facts", facts)) + section("file-contents", lines)
    for name, content in ({"file_links": "", "file_attributes": ""} | others).items():
        body += section(name.replace("_", "-"), content)
    return parse(body, REQUEST)


def grep(path: str, content: bytes) -> bytes:
    """Return what ``grep -H '' path`` prints: it ends the last line in any case."""
    if not content:
        return b""
    rows = content.removesuffix(b"\n").split(b"\n")
    return b"".join(path.encode() + b":" + row + b"\n" for row in rows)


def content_of(found: HostState, path: str) -> bytes:
    file = found.file(path)
    assert isinstance(file, File), file
    return file.content


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60), st.sampled_from([b"\n", b"\n\n", b"/b:x\n/c:", b"a\r\n"])
        ),
        min_size=3,
        max_size=3,
    )
)
def test_any_bytes_come_through(contents: list[bytes]) -> None:
    given_files = dict(zip(("/a", "/b", "/c"), contents, strict=True))
    found = answer(given_files)
    assert {path: content_of(found, path) for path in given_files} == given_files


@pytest.mark.parametrize("content", [b"10.0.0.1 gpu01\n" * 500, b"10.0.0.1 gpu01\n" * 499 + b"x"])
def test_the_same_file_of_two_hosts_is_one_object_and_one_byte_keeps_them_apart(
    content: bytes,
) -> None:
    first = content_of(answer({"/a": content}), "/a")
    assert content_of(answer({"/a": content}), "/a") is first
    for at in (0, 100, len(content) - 2):
        changed = bytearray(content)
        changed[at] ^= 1
        assert content_of(answer({"/a": bytes(changed)}), "/a") == changed
        assert content_of(answer({"/a": content + b"y"}), "/a") == content + b"y"
    assert first == content


def test_real_files_come_through() -> None:
    found = state("lab-busy")
    assert content_of(found, "/etc/nccl.conf") == (
        b"NCCL_DEBUG=INFO\r\nX=caf\xe9\n{{ 7*7 }} $(touch /tmp/pwned) `id`\nlast line without end"
    )
    assert content_of(found, "/etc/hccn.conf") == b""
    hosts = found.file("/etc/hosts")
    assert isinstance(hosts, File)
    assert (hosts.mode, hosts.uid, hosts.exists, hosts.immutable) == (0o644, 0, True, False)


def test_a_link_is_followed_and_told() -> None:
    found = state("lab-busy")
    link, null = (
        found.file("/etc/sysctl.d/99-sysctl.conf"),
        found.file("/etc/sysctl.d/50-pid-max.conf"),
    )
    assert isinstance(link, File)
    assert isinstance(null, File)
    assert (link.real_path, bool(link.content)) == ("/etc/sysctl.conf", True)
    assert (null.real_path, null.content) == ("/dev/null", b"")


def test_a_link_that_leads_nowhere_is_unknown() -> None:
    file = state("lab-busy").file("/etc/sysctl.d/80-dangling.conf")
    assert isinstance(file, Unknown)
    assert "leads nowhere" in file.reason


def test_a_file_that_is_not_there_is_known_not_to_be() -> None:
    file = state("lab-idle").file("/etc/nccl.conf")
    assert file == File(path="/etc/nccl.conf", real_path="/etc/nccl.conf", exists=False)


def test_a_path_that_was_not_asked_for_is_unknown() -> None:
    file = state("lab-idle").file("/etc/shadow")
    assert isinstance(file, Unknown)
    assert "/etc/shadow" in file.reason


def test_a_pattern_that_found_nothing_is_no_file() -> None:
    assert not [path for path in state("lab-idle").files if "*" in path]


@pytest.mark.parametrize("number", ["", " (os error 2)"])  # of GNU coreutils, and of uutils 0.0.30
def test_permission_is_told_from_absence(number: str) -> None:
    facts = "stat: cannot statx '/a': Permission denied\n"
    facts += f"stat: cannot statx '/b': No such file or directory{number}\n"
    found = answer({}, facts=facts)
    refused, missing = found.file("/a"), found.file("/b")
    assert isinstance(refused, Unknown)
    assert "Permission denied" in refused.reason
    assert isinstance(missing, File)
    assert not missing.exists


def test_a_path_that_the_host_passed_over_is_unknown() -> None:
    assert isinstance(answer({"/a": b"x"}).file("/b"), Unknown)


def test_a_file_that_changed_while_it_was_read_costs_only_itself() -> None:
    lines = grep("/a", b"one\n") + grep("/b", b"now longer\n") + grep("/c", b"three\n")
    found = answer({"/a": b"one\n", "/b": b"two\n", "/c": b"three\n"}, lines=lines)
    assert isinstance(found.file("/b"), Unknown)
    assert content_of(found, "/a") == b"one\n"
    assert content_of(found, "/c") == b"three\n"


def test_a_file_that_vanished_while_it_was_read_is_unknown() -> None:
    found = answer({"/a": b"one\n", "/b": b"two\n"}, lines=grep("/b", b"two\n"))
    assert isinstance(found.file("/a"), Unknown)
    assert content_of(found, "/b") == b"two\n"


@pytest.mark.parametrize("mode", ["41ed", "11a4", "21b6", "c1ff"])
def test_what_is_no_regular_file_is_unknown(mode: str) -> None:
    file = answer({}, facts=f"{mode} 0 0 5 1 2 3 /a\n").file("/a")
    assert isinstance(file, Unknown)
    assert "regular" in file.reason


def test_a_huge_file_is_unknown() -> None:
    file = answer({}, facts="81a4 0 0 4194305 1 2 3 /a\n").file("/a")
    assert isinstance(file, Unknown)
    assert "4 MiB" in file.reason


def test_attributes_of_the_file_and_of_its_directory_count() -> None:
    listing = "----i---------e------- /a\n--------------e------- /b\n"
    found = answer({"/a": b"x", "/b": b"x"}, file_attributes=listing)
    flags = [file.immutable for path in ("/a", "/b") if isinstance(file := found.file(path), File)]
    assert flags == [True, False]


def test_a_read_only_mount_makes_its_files_read_only() -> None:
    mounts = "".join(
        f"/proc/self/mountinfo:{row}\n"
        for row in ("1 0 8:1 / / rw - ext4 /dev/sda rw", "2 1 8:2 / /b ro - ext4 /dev/sdb rw")
    )
    found = answer({"/a": b"x", "/b": b"x"}, kernel=mounts)
    flags = [file.read_only for path in ("/a", "/b") if isinstance(file := found.file(path), File)]
    assert flags == [False, True]


def test_fifty_thousand_lines_come_through() -> None:
    content = b"".join(b"10.0.0.1 node%05d\n" % at for at in range(50_000))
    assert content_of(answer({"/a": content, "/b": b"after"}), "/a") == content


def test_mentions_tell_file_line_and_text() -> None:
    mentions = state("lab-busy").mentions
    assert not isinstance(mentions, Unknown)
    assert ("/etc/profile.d/nccl.sh", 1, "export NCCL_P2P_DISABLE=1") in [
        (mention.path, mention.line, mention.text) for mention in mentions
    ]


def test_content_that_is_not_utf8_can_be_stored() -> None:
    file = File(path="/a", real_path="/a", exists=True, content=b"caf\xe9\x00")
    assert File.model_validate_json(file.model_dump_json()) == file


@pytest.mark.parametrize(("path", "size"), [("/sys/class/a/speed", 4096), ("/proc/sys/b", 0)])
def test_a_file_of_the_kernel_is_read_whatever_its_size(path: str, size: int) -> None:
    found = answer({}, facts=f"81a4 0 0 {size} 1 2 3 {path}\n", lines=grep(path, b"10000\n"))
    assert content_of(found, path) == b"10000\n"
    silent = answer({}, facts=f"81a4 0 0 {size} 1 2 3 {path}\n", lines=b"")
    assert silent.file(path) == Unknown(reason=f"{path} is empty, or not to be read")


def test_a_device_says_what_it_is_and_a_file_in_its_place_hides_no_other() -> None:
    request = ProbeRequest(nonce=NONCE, files=("/dev/null", "/dev/zero", "/dev/random", "/c"))
    facts = "21b6 0 0 0 1 2 3 /dev/zero\n8180 0 0 4 1 2 3 /dev/null\n81a4 0 0 2 1 2 3 /c\n"
    facts += "stat: cannot statx '/dev/random': No such file or directory\n"
    body = section("file-facts", facts)
    body += section("file-contents", b"/dev/null:abc\n/c:x\n")
    body += section("file-links", "") + section("file-attributes", "")
    found = parse(body, request)
    null, zero, random = (found.file(f"/dev/{name}") for name in ("null", "zero", "random"))
    assert isinstance(null, File)
    assert isinstance(zero, File)
    assert isinstance(random, File)
    assert (null.kind, null.mode, null.content) == ("a regular file", 0o600, b"")
    assert (zero.kind, zero.mode, zero.exists) == ("", 0o666, True)
    assert (random.kind, random.exists) == ("", False)
    assert content_of(found, "/c") == b"x\n"
