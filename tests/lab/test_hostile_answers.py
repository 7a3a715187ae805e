"""A host whose login shell means harm answers by its own sshd: no traceback, no hang, and the others go on."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster, clusters
from tests.lab.site import RemedyOutput, Site

pytestmark = pytest.mark.lab

MIB = 1 << 20
MOST_MIB = 64
SECONDS = 90.0
HARM = r"\033]52;c;ZXZpbA==\007\033[2K\r\033[1Aproved       4 of 4 ranks"

# It knows what a host knows: the marks of the command line, and the nonce of the script.
SHELL = r"""#!/bin/sh
way=$(cat /etc/harm)
marks=$(printf %s "$2" | grep -o 'remedy-s[a-z]*-[0-9a-f]*' | sort -u)
begun=$(printf '%s\n' "$marks" | grep shell) script=$(printf '%s\n' "$marks" | grep script)
case $way in
  greeting) exec cat /dev/zero ;;
  mute) exec sleep 600 ;;
  words) printf 'HARM\n'; printf 'HARM\n' >&2; exit 1 ;;
esac
printf '\n%s\n' "$begun" >&2
printf '\n%s\n%s\n' "$begun" "$script"
text=$(cat)
nonce=$(printf '%s\n' "$text" | sed -n "s/^nonce=//p" | head -n 1 | tr -d "'")
mark() { printf '\nremedy-probe %s %s\n' "$nonce" "$1"; }
packed() { mark gzip; gzip -1 | base64; mark end; }
frame() { printf '@%s begin %s 1.00\n' "$nonce" "$1"; cat; printf '\n@%s end %s 2.00 ok\n' "$nonce" "$1"; }
case $way in
  endless) exec cat /dev/zero ;;
  lines) exec yes "$nonce - HARM" ;;
  errors) exec cat /dev/zero >&2 ;;
  bomb) head -c 300000000 /dev/zero | frame kernel | packed ;;
  many) yes /a: | head -n 10000000 | frame kernel | packed ;;
  deep) head -c 1000000 /dev/zero | tr '\0' '[' | frame nft | packed ;;
  facts) { printf 'HARM\n' | frame who; printf '/etc/hostname:HARM\n' | frame kernel; } | packed ;;
  foreign) nonce=00000000000000000000000000000000; echo x | frame kernel | packed ;;
  torn) echo x | frame kernel | packed | head -c 60 ;;
  status) printf 'HARM\n' >&2; exit 255 ;;
  die) kill -9 $$ ;;
esac
""".replace("HARM", HARM)
WAYS = (
    *("words", "bomb", "lines", "facts"),
    *("greeting", "endless", "errors", "many", "deep", "foreign", "torn", "status", "die", "mute"),
)
HOST = "gpu02"


@pytest.fixture(scope="module")
def site(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with clusters(tmp_path_factory.mktemp("hostile")) as make:
        yield Site(make(count=3))


def turn(cluster: Cluster, way: str) -> None:
    """Give root of a host the hostile program for a login shell."""
    place = cluster.host(HOST)
    place.run(f"cat >/usr/local/bin/harm <<'END'\n{SHELL}END\nchmod 755 /usr/local/bin/harm")
    place.run(f"echo {way} >/etc/harm; usermod -s /usr/local/bin/harm root")


def measured(site: Site, *words: str) -> tuple[RemedyOutput, float, float]:
    """Run a command; return what it said, the MiB that it had at most, and its seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            site.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        watchdog = threading.Timer(SECONDS, process.kill)  # a hang shows as an end by signal 9
        watchdog.start()
        _, status, usage = os.wait4(process.pid, 0)
        watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    output = RemedyOutput(process.returncode, *texts)
    return output, usage.ru_maxrss / 1024, time.monotonic() - began


def shows(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture(scope="module")
def base(site: Site) -> float:
    """What a check of the same hosts has in memory at most while none means harm."""
    output, mib, _ = measured(site, "check")
    assert output.code == 0, output.text
    return mib


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
def test_whatever_its_shell_answers_the_others_are_judged(
    site: Site, base: float, way: str
) -> None:
    turn(site.cluster, way)
    output, mib, seconds = measured(site, "check")
    print(
        f"{way}: exit {output.code}, {mib - base:.0f} MiB more, {seconds:.0f} s\n{output.text[-600:]}"
    )
    assert "Traceback" not in output.text
    assert shows(output.text), ascii(output.text)
    assert output.code in ((0, 1, 5) if way == "facts" else (1, 5))
    assert not any(line.startswith("proved") for line in output.text.splitlines())
    assert mib - base <= MOST_MIB
    document = json.loads(measured(site, "check", "--json")[0].stdout)
    assert {document["hosts"][name]["status"] for name in ("gpu01", "gpu03")} <= {"ok", "pending"}


def test_a_run_writes_its_end_and_makes_the_others_right(site: Site) -> None:
    """The run is of hosts that all need changes, and one of them means harm from its first answer on."""
    cluster = site.cluster
    cluster.host(HOST).run("usermod -s /bin/bash root")
    for host in cluster.hosts:
        cluster.run(
            host, "echo wrong >/etc/hostname; sed -i '/BEGIN remedy/,/END remedy/d' /etc/hosts"
        )
    journal = Path(site.folder, ".remedy", "journal.jsonl")
    for way in ("lines", "endless"):
        turn(cluster, way)
        output, _, _ = measured(site, "apply", "--yes", "--no-verify")
        assert "Traceback" not in output.text
        assert shows(output.text)
        assert output.code in (1, 5)
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        last = [r for r in records if r["mode"] == "apply"][-1]
        assert (last["event"], last["data"]["exit_code"]) == ("ended", output.code)
    cluster.host(HOST).run("usermod -s /bin/bash root")
    for host in ("gpu01", "gpu03"):
        assert site.names(host).static == f"{host}\n".encode()
