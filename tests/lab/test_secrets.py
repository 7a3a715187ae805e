"""Canaries: words that remedy has no need of are planted everywhere, and show up nowhere."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.lab.rootfs import GUARDED_PASSWORD
from remedy.secret import KEY_NAME
from tests.lab import forks
from tests.lab.conftest import Cluster
from tests.lab.processes import DECOY, start_looking, stop_looking
from tests.lab.site import Site

pytestmark = pytest.mark.lab
HOST = "gpu02"
IN_HOSTS, IN_ENVIRONMENT = "canary-in-hosts", "canary-in-environment"
IN_INVENTORY, IN_SPEC, IN_SHELL = "canary-in-inventory", "canary-in-spec", "canary-in-shell"
CANARIES = (IN_ENVIRONMENT, IN_INVENTORY, IN_SPEC, IN_SHELL, GUARDED_PASSWORD)


@dataclass(frozen=True)
class Hunt:
    """Everything that remedy said and wrote, by where that was."""

    site: Site
    said: Mapping[str, bytes]
    host: Mapping[str, bytes]
    codes: Mapping[str, int]

    def found(self, word: str) -> list[str]:
        """Return where a word shows up, also where it is written in base64."""
        places = {**self.said, **self.host}
        places |= {
            f".remedy/{p.name}": p.read_bytes() for p in _files(self.site.folder / ".remedy")
        }
        places["plan.json"] = (self.site.folder / "plan.json").read_bytes()
        return sorted(name for name, text in places.items() if _holds(text, word))


def _holds(text: bytes, word: str) -> bool:
    if word.encode() in text:
        return True
    packed = re.findall(rb"[A-Za-z0-9+/_-]{16,}={0,2}", text)
    return any(word.encode() in _unpacked(one) for one in packed)


def _unpacked(text: bytes) -> bytes:
    try:
        return base64.b64decode(text.translate(bytes.maketrans(b"-_", b"+/")) + b"===")
    except ValueError:
        return b""


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def hunt(module_cluster: Cluster) -> Hunt:
    site = Site(module_cluster)
    module_cluster.fault(HOST, "wrong-socket-ifname")
    module_cluster.host(HOST).must(
        f"echo 10.9.9.9 {IN_HOSTS} >>/etc/hosts; echo '# SITE_TOKEN={IN_ENVIRONMENT}' >>/etc/environment"
    )
    site.edit_inventory(
        {HOST: {"ssh_user": "guarded", "_sudo_password": GUARDED_PASSWORD, "note": IN_INVENTORY}}
    )
    (site.folder / "remedy.yaml").write_text(f"# {IN_SPEC}\nenvironment: {{interface: auto}}\n")
    start_looking(module_cluster, HOST)
    said: dict[str, bytes] = {}
    codes: dict[str, int] = {}

    def run(name: str, *words: str) -> bytes:
        done = forks.run(
            site.command(name, *words),
            stdin="",
            seconds=180,
            environment={**os.environ, "SITE_TOKEN": IN_SHELL},
            folder=site.folder,
        )
        key = f"{name} {len(said)}"
        said[key] = (done.stdout + done.stderr).encode()
        codes[key] = done.returncode
        return done.stdout.encode()

    only = ("--limit", HOST, "-v")
    run("check", *only)
    run("plan", *only, "-o", str(site.folder / "plan.json"))
    words = ("--plan", str(site.folder / "plan.json"), "--yes", "--no-verify", *only)
    applied = json.loads(run("apply", "--json", *words))
    run("audit export", "--format", "json")
    run("history")
    said["show"] = subprocess.run(
        [site.command("x")[0], "show", str(site.folder / "plan.json")],
        capture_output=True,
        check=True,
    ).stdout
    run("rollback", applied["run"], "--yes", *only)
    host = {"process list": stop_looking(module_cluster, HOST)}
    look = {
        "log": "cat /var/log/remedy.jsonl",
        "receipts": "cat /var/lib/remedy/runs/*/receipt.jsonl /var/lib/remedy/runs/*/changes.json",
        "undo": "cat /var/lib/remedy/runs/*/undo",
        "system journal": "journalctl -q --no-pager",
    }
    for name, command in look.items():
        host[name] = module_cluster.host(HOST).must(command).encode("utf-8", "replace")
    return Hunt(site, said, host, codes)


def test_the_run_was_a_real_one(hunt: Hunt) -> None:
    assert set(hunt.codes.values()) == {0}, {k: hunt.said[k] for k, v in hunt.codes.items() if v}
    assert b"/etc/environment" in hunt.host["receipts"]
    assert b"/etc/hosts" in hunt.host["receipts"]
    assert b"sh\0-s" in hunt.host["process list"]
    assert all(hunt.host.values())


def test_a_keyed_digest_stands_for_the_password_in_the_plan(hunt: Hunt) -> None:
    plan = json.loads((hunt.site.folder / "plan.json").read_text())["plan"]
    assert list(plan["secrets"]) == [f"{HOST} _sudo_password"]
    assert re.search(rb"secret _sudo_password of gpu02: [0-9a-f]{12}", hunt.said["show"])
    key = (hunt.site.folder / ".remedy" / KEY_NAME).read_text().strip()
    assert hunt.found(key) == [f".remedy/{KEY_NAME}"]


@pytest.mark.parametrize("canary", CANARIES)
def test_a_canary_shows_up_nowhere(hunt: Hunt, canary: str) -> None:
    assert hunt.found(canary) == []


def test_a_foreign_line_is_on_the_screen_beside_a_change_and_nowhere_else(hunt: Hunt) -> None:
    assert set(hunt.found(IN_HOSTS)) <= {"check 0", "plan 1", "apply 2", "rollback 6"}


def test_a_planted_canary_is_caught_wherever_it_is(hunt: Hunt) -> None:
    assert "process list" in hunt.found(DECOY)
    decoy = "a-word-that-was-planted"
    path = hunt.site.folder / ".remedy" / "planted"
    for text in (decoy.encode(), base64.b64encode(f"x {decoy}".encode())):
        path.write_bytes(b"some text " + text + b" and more")
        assert hunt.found(decoy) == [".remedy/planted"]
    path.unlink()
    for name in hunt.said:
        said = {**hunt.said, name: hunt.said[name] + decoy.encode()}
        assert Hunt(hunt.site, said, hunt.host, hunt.codes).found(decoy) == [name]
