"""What a gateway's message carries: bytes, or an error; nothing of it is run. And the same for ClusterShell."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ClusterShell
import pytest
from ClusterShell.Communication import StdOutMessage
from hypothesis import given
from hypothesis import strategies as st

from remedy.transport.gateways.decoder import PayloadError, output_of

PATCH = Path(__file__).parents[4] / "docs" / "upstream" / "clustershell-plain-output.patch"
OTHER = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.text(), st.floats(), st.lists(st.binary())),
    *(st.tuples(st.binary()), st.dictionaries(st.text(), st.binary()), st.sets(st.binary())),
    st.builds(bytearray, st.binary()),
)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("called",)


@given(st.binary(max_size=70_000))
def test_what_clustershell_writes_of_output_is_read(content: bytes) -> None:
    assert output_of(StdOutMessage("h", content).data) == content


@given(OTHER, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_anything_else_is_refused(value: Any, protocol: int) -> None:
    with pytest.raises(PayloadError):
        output_of(base64.b64encode(pickle.dumps(value, protocol)))


@given(st.binary(max_size=300))
def test_any_bytes_are_output_or_refused(payload: bytes) -> None:
    for data in (payload, base64.b64encode(payload), base64.b64encode(b"\x80\x04" + payload)):
        try:
            assert type(output_of(data)) is bytes
        except PayloadError:
            continue


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [Evil(), [Evil()], os.getpid, Evil])
def test_nothing_is_called(
    value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PayloadError):
        output_of(base64.b64encode(pickle.dumps(value, protocol)))
    assert not list(tmp_path.iterdir())


_PROGRAM = """\
import base64, os, pickle, sys
sys.path.insert(0, sys.argv[1])
from ClusterShell import Communication
assert Communication.__file__.startswith(sys.argv[1])
class Evil:
    def __reduce__(self): return os.mkdir, (sys.argv[1] + "/called",)
message = Communication.StdOutMessage("h", b"what a host printed")
assert message.data_decode() == b"what a host printed"
assert Communication.StdErrMessage("h", b"x" * 100_000).data_decode() == b"x" * 100_000
for value in (Evil(), "text", [b""], None):
    message.data = base64.b64encode(pickle.dumps(value, 4))
    try:
        message.data_decode()
    except Communication.MessageProcessingError as error:
        print(error)
control = Communication.ControlMessage(); control.data_encode({"cmd": "x"})
assert control.data_decode() == {"cmd": "x"}
"""


def test_the_patch_for_clustershell_does_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "ClusterShell"
    folder.mkdir()
    for path in Path(ClusterShell.__file__).parent.rglob("*.py"):
        target = folder / path.relative_to(Path(ClusterShell.__file__).parent)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    subprocess.run(
        ["git", "apply", "-p2", str(PATCH)], cwd=tmp_path, check=True, stdin=subprocess.DEVNULL
    )
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("no plain output") == 4
    assert not (tmp_path / "called").exists()
