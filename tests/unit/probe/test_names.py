"""Names: what the host leaves out is filled in from its hosts file, and never guessed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from remedy.probe import ProbeRequest, parse_probe, render_probe
from remedy.probe.names import Names, hosts_order
from remedy.probe.request import mark
from remedy.values import Unknown
from tests.unit.probe_data import NONCE, parse, recorded, replaced

HOSTS = b"10.0.0.1\tgpu01 GPU02\n10.0.0.3 gpu03 # gpu02\n10.0.0.9 gpu03\r\n"
REQUEST = ProbeRequest(names=("gpu01", "gpu02", "gpu03"), nonce=NONCE)


def line(address: str, title: str = "") -> str:
    return f"{address:<15} STREAM {title}\n"


def names_of(answer: str, hosts: bytes = HOSTS) -> Names | Unknown:
    body = recorded("lab-idle")
    body = replaced(
        body, "file-contents", b"".join(b"/etc/hosts:" + x for x in hosts.splitlines(keepends=True))
    )
    facts = f"81a4 0 0 {len(hosts)} 1 1 1 /etc/hosts"
    body = replaced(replaced(body, "file-facts", facts), "names", answer)
    return parse(body, REQUEST).names


def test_what_is_not_printed_is_the_only_address_of_the_hosts_file() -> None:
    names = names_of(
        "asked trainer\n"
         f"whole {mark(1)} {mark(3)}\n"
        + line("fe80::1%3", "gpu03") + line("10.0.0.3") + line(mark(3), mark(3))
    )  # fmt: skip
    assert isinstance(names, Names)
    assert names.user == "trainer"
    assert names.peers == {
        "gpu01": ("10.0.0.1",),
        "gpu02": ("10.0.0.1",),
        "gpu03": ("fe80::1", "10.0.0.3"),
    }


@pytest.mark.parametrize(
    "answer",
    [
        f"whole {mark(1)} {mark(3)}\n",  # gpu03 has two addresses there: it is not known which came
        f"whole {mark(1)} {mark(4)}\n",
        f"whole {mark(0)} {mark(3)}\n",
        f"whole {mark(3)} {mark(1)}\n",
        "whole x y\n",
    ],
)
def test_what_cannot_be_filled_in_is_unknown(answer: str) -> None:
    assert isinstance(names_of(answer), Unknown)


def test_without_the_mark_of_a_group_nothing_is_filled_in() -> None:
    names = names_of(line("10.0.0.1") + line(mark(1), mark(1)))
    assert isinstance(names, Names)
    assert names.peers == {"gpu01": ("10.0.0.1",)}


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("hosts: files dns\n", ("files", "dns")),
        ("hosts:dns[!UNAVAIL=return]files\n", ("dns", "[!UNAVAIL=return]", "files")),
        ("hosts: files\nhosts: dns # last\n", ("dns",)),
        ("# hosts: dns\n", ()),
    ],
)
def test_the_order_of_services(text: str, order: tuple[str, ...]) -> None:
    assert hosts_order(text) == order


GETENT = """\
#!/bin/sh
[ "$1" = -A ] && { [ "%(all)s" ] || exit 64; shift; }
shift
for n; do case $n in
    0.*) printf '%%s STREAM %%s\\n%%s DGRAM\\n' "$n" "$n" "$n" ;;
    self) echo '::1 STREAM self' ;;
    right) echo '10.0.0.1 STREAM right'; echo '10.0.0.1 DGRAM'; echo '10.0.0.1 RAW' ;;
    both) echo 'fd00::2 STREAM both'; echo '10.0.0.2 STREAM' ;;
    other) echo '10.0.0.9 STREAM other' ;;
    several) echo '10.0.0.5 STREAM several' ;;
esac; done
"""
FILE = """\
10.0.0.1 right
10.0.0.2 both
fd00::2 both
10.0.0.3 other
10.0.0.5 several
10.0.0.6 several
10.0.0.7 mute
"""


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
@pytest.mark.parametrize(("with_all", "few"), [(True, 4), (False, 4), (True, 5)])
def test_the_host_prints_what_differs_from_its_file_and_of_few_names_all(
    tmp_path: Path, shell: str, *, with_all: bool, few: int
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    request = ProbeRequest(names=("right", "both", "other", "several", "mute"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/getent").write_text(GETENT % {"all": "yes" if with_all else ""})
    (tmp_path / "bin/getent").chmod(0o755)
    (tmp_path / "hosts").write_text(FILE)
    text = render_probe(request)
    assert '"/etc/hosts"' in text
    text = text.replace('"/etc/hosts"', f'"{tmp_path}/hosts"')
    assert "\nfew_names=64\n" in text
    text = text.replace("\nfew_names=64\n", f"\nfew_names={few}\n")
    # The probe is told to end after the section, with an answer that is not packed.
    text = text.replace("section listeners listeners", 'kill "$dog"; return')
    text = text.replace("if has base64 && has gzip; then", "probe </dev/null; exit; if :; then")
    words = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip
    section = done.stdout.partition(f"@{request.nonce} begin names ")[2]
    printed = section.partition(f"\n@{request.nonce} end names")[0]
    shown = [x.split()[0] for x in printed.splitlines() if " STREAM" in x]
    compared = len(request.names) > few
    assert (f"whole {mark(1)} {mark(5)}" in printed) == compared
    assert [x for x in shown if x != mark(0)] == [
        *(() if compared else ("10.0.0.1", mark(1))),
        *("fd00::2", "10.0.0.2", mark(2)), *("10.0.0.9", mark(3)), *("10.0.0.5", mark(4)), mark(5),
    ]  # fmt: skip


def test_a_user_that_is_not_there_is_named() -> None:
    request = ProbeRequest(names=("localhost",), user="no-such-user")
    done = subprocess.run(
        ["sh", "-s"], input=render_probe(request), capture_output=True, text=True, check=True
    )
    names = parse_probe("here", done.stdout, request).names
    assert isinstance(names, Unknown)
    assert names.reason.startswith("there is no user no-such-user ")


@pytest.mark.parametrize("user", ["-x", "a b", "$(id)", "a\nb", "a;b", "x" * 65])
def test_a_user_is_a_name(user: str) -> None:
    with pytest.raises(ValueError, match="user"):
        ProbeRequest(user=user)
