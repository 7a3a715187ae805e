"""A command that is refused for what was typed, or for its files, asks no host anything."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from remedy.cli.main import main
from tests.alone import COOPERATIVE


@dataclass
class Place:
    """An inventory whose only host counts who comes, and says nothing.

    Args:
        folder: where the inventory is.
        host: what listens there.
    """

    folder: Path
    host: socket.socket

    @property
    def callers(self) -> int:
        """How many connections were made to the host."""
        count = 0
        while select.select([self.host], [], [], 0)[0]:
            self.host.accept()[0].close()
            count += 1
        return count

    def remedy(self, command: str) -> tuple[int, str]:
        """Run a command in the folder; return its exit code and what it said."""
        words = command.replace("FOLDER", str(self.folder)).split()
        done = CliRunner().invoke(main, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A host that nobody gets an answer from."""
    with socket.create_server(("127.0.0.1", 0)) as host:
        data = {"ssh_hostname": "127.0.0.1", "ssh_port": host.getsockname()[1], "ssh_user": "root"}
        (tmp_path / "inventory.py").write_text(f"hosts = [('gpu01', {data!r})]\n")
        (tmp_path / "broken.json").write_text("{}")
        yield Place(tmp_path, host)


I = "FOLDER/inventory.py"  # noqa: E741 - it stands for every inventory below


@pytest.mark.parametrize(
    ("command", "settings", "words"),
    [
        (f"check {I}", "limts: {}", "did you mean 'limits'"),
        (f"check {I}", "limits: {memlok: 1}", "no key 'limits.memlok'"),
        (f"check {I}", "firewall: {open: 3}", "firewall"),
        (f"apply {I} --yes", "verify: {deadline: soon}", "verify.deadline"),
        (f"apply {I} --yes --waves 3x", "", "waves"),
        (f"verify {I} --min-busbw fast", "", "--min-busbw is"),
        (f"check {I} --only hostnam", "", "Did you mean hostname"),
        (f"plan {I} --skip nothing-like-it", "", "no remedy"),
        (f"plan {I} -o FOLDER/gone/plan.json", "", "there is no folder"),
        (f"plan {I} -o {I}", "", "inventory.py is there already, and is no plan"),
        (f"plan {I} -o FOLDER/remedy.yaml", "limits: {}", "remedy.yaml is there already"),
        (f"plan {I} --html {I}", "", "inventory.py is there already, and is no page"),
        (f"apply {I} --yes --html FOLDER/broken.json", "", "is there already, and is no page"),
        (f"rollback r1 {I} -o {I}", "", "inventory.py is there already, and is no plan"),
        (f"plan {I} -o - --json", "", "both write to standard output"),
        (f"verify {I} --html FOLDER/gone/page.html", "", "there is no folder"),
        (f"verify {I} --html -", "", "not written to standard output"),
        (f"plan {I} -o FOLDER/plan --html FOLDER/plan", "", "would be written twice"),
        (f"apply {I} --plan FOLDER/broken.json --html FOLDER/broken.json", "", "written twice"),
        (f"apply {I} --yes", "approval: {required: 1}", "1 approval required"),
        (f"apply {I} --yes --require-approval", "", "1 approval required"),
        (f"apply {I} --yes --plan FOLDER/broken.json", "", "broken.json"),
        (f"apply {I} --yes --resume r1 --plan FOLDER/broken.json", "", "exclude each other"),
        (f"apply {I} --yes --resume r1", "", "no run 'r1'"),
        (f"apply {I} --yes --resume latest", "", "error: "),
        (f"rollback r1 {I} --yes", "", "no run 'r1'"),
        (f"rollback r1 {I} --yes --only hostnam", "", "Did you mean hostname"),
        (f"rollback r1 {I} --html FOLDER/gone/page.html", "", "there is no folder"),
        (f"rollback r1 {I} -o FOLDER/plan --html FOLDER/plan", "", "would be written twice"),
        (f"rollback r1 {I} -o - --json", "", "both write to standard output"),
        (f"verify {I} --skip hostnam", "", "Did you mean hostname"),
        (f"unlock r1 {I} --only hostname", "", "whichever remedies changed the host.\n"),
        (f"facts {I} --skip=hostname", "", "before any remedy decides"),
        (f"diagnose x.log --inventory {I} --only hostname", "", "it would seem refuted"),
        (f"trust {I} --only hostname", "", "no remedy decides about these"),
        (f"audit verify {I} --only hostname", "", "the journal holds runs as a whole"),
        (f"facts {I} kernl", "", "no fact 'kernl'; did you mean 'kernel'?"),
        (f"facts {I} kernl --json", "", "no fact 'kernl'"),
        (f"check {I} --limit gpu9", "", "gpu9"),
        (f"check {I} -q -v", "", "exclude each other"),
    ],
)
def test_what_cannot_be_meant_reaches_no_host(
    place: Place, command: str, settings: str, words: str
) -> None:
    (place.folder / "remedy.yaml").write_text(settings)
    before = {file: file.read_bytes() for file in place.folder.iterdir()}
    code, output = place.remedy(command)
    assert code in (2, 4), output
    assert words in output
    assert place.callers == 0
    assert {file: file.read_bytes() for file in before} == before


@COOPERATIVE
def test_the_host_counts_who_comes(place: Place) -> None:
    (place.folder / "remedy.yaml").write_text("ssh: {connect: 1, key_exchange: 1}")
    code, output = place.remedy(f"check {I}")
    assert (code, place.callers) == (5, 1), output
