"""Which lines of known_hosts hold for a host, as ssh-keygen -F has it; what is left where keys are replaced."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import RefusedError, RemedyError
from remedy.trust.certificate import ShownKey
from remedy.trust.judge import KeyState, SshServer
from remedy.trust.known_hosts import read_known_hosts
from remedy.trust.record import add_key, replace_keys


def key(letter: str) -> ShownKey:
    parts = (b"ssh-ed25519", letter.encode() * 32)
    return ShownKey(b"".join(len(part).to_bytes(4, "big") + part for part in parts))


OLD, NEW, OTHER = key("o"), key("n"), key("x")
NAME = st.text("abAB.-1", min_size=1, max_size=6).filter(lambda name: not name.startswith("-"))
PATTERN = st.builds(
    "".join,
    st.tuples(st.sampled_from(["", "", "!"]), st.text("abAB.-1*?[]:", min_size=1, max_size=6)),
)
LISTS = st.lists(PATTERN, min_size=1, max_size=4).map(",".join)


@given(NAME, st.lists(LISTS, min_size=1, max_size=8))
def test_names_fit_as_openssh_has_it(name: str, lists: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "known"
        path.write_text("".join(f"{names} {OLD.line}\n" for names in lists))
        done = subprocess.run(
            ["ssh-keygen", "-F", name.lower(), "-f", path],
            capture_output=True,
            text=True,
            check=False,
        )
        shown = [line for line in done.stdout.splitlines() if line.startswith("# Host ")]
        known = sorted(entry.line for entry in read_known_hosts([path]).of(name.lower()))
        assert known == [int(line.split()[-1]) for line in shown]


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


def server(path: Path, *, system: Path | None = None, port: int = 22) -> SshServer:
    return SshServer("gpu01", port, "", (path,), () if system is None else (system,))


def test_a_new_key_comes_after_a_last_line_without_end(known: Path) -> None:
    known.write_text(f"gpu02 {OTHER.line}")
    add_key(server(known, port=2222), [NEW])
    assert known.read_text() == f"gpu02 {OTHER.line}\n[gpu01]:2222 {NEW.line}\n"


def test_replaced_keys_leave_what_holds_for_others(known: Path) -> None:
    known.write_text(
        f"# kept\ngpu01,10.0.0.1 {OLD.line} mine\ngpu01 {OTHER.line}\n\ngpu02 {OLD.line}\n"
        f"@revoked gpu01 {OTHER.line}\n"
    )
    replace_keys(server(known), [NEW])
    assert known.read_text() == (
        f"# kept\n10.0.0.1 {OLD.line} mine\n\ngpu02 {OLD.line}\n@revoked gpu01 {OTHER.line}\ngpu01 {NEW.line}\n"
    )
    assert server(known).judge(NEW).state is KeyState.KNOWN
    assert server(known).judge(OLD).state is KeyState.CHANGED


def test_a_hashed_name_is_replaced(known: Path) -> None:
    known.write_text(f"gpu01 {OLD.line}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], capture_output=True, check=True)
    assert known.read_text().startswith("|1|")
    replace_keys(server(known), [NEW])
    assert known.read_text() == f"gpu01 {NEW.line}\n"


@pytest.mark.parametrize("names", ["gpu*", "gpu01,gpu0?"])
def test_a_key_that_stays_valid_by_a_pattern_is_refused(known: Path, names: str) -> None:
    text = f"{names} {OLD.line}\n"
    known.write_text(text)
    with pytest.raises(RefusedError, match="would still be accepted"):
        replace_keys(server(known), [NEW])
    assert known.read_text() == text


def test_a_key_in_a_file_of_the_machine_is_refused(known: Path, tmp_path: Path) -> None:
    system = tmp_path / "system"
    system.write_text(f"gpu01 {OLD.line}\n")
    with pytest.raises(RefusedError, match="would still be accepted"):
        replace_keys(server(known, system=system), [NEW])
    assert not known.exists()


@pytest.mark.parametrize("name", ["gpu*", "a,b", "!a", "|1|a", "@revoked", "a b", "a\nb", "gpü"])
def test_a_name_that_would_mean_others_is_not_written(known: Path, name: str) -> None:
    with pytest.raises(RefusedError):
        add_key(SshServer(name, user_files=(known,)), [NEW])
    assert not known.exists()


def test_without_a_file_nothing_is_recorded() -> None:
    with pytest.raises(RemedyError, match="no file to record"):
        add_key(SshServer("gpu01"), [NEW])
    with pytest.raises(RemedyError, match="keeps no keys"):
        add_key(SshServer("gpu01", user_files=(Path("/dev/null"),)), [NEW])
