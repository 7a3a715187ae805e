"""A configuration of nftables, read as nft reads it, without nft."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from remedy.firewall.boot.nft_rule import NotReadError
from remedy.firewall.boot.nft_text import read_config
from remedy.probe import NftRuleset
from remedy.probe.firewall import parse_firewalls
from remedy.probe.frames import Section, Sections

CONFIG = """\
#!/usr/sbin/nft -f
flush ruleset
define LAN = { 10.0.0.0/24, 10.1.0.5 }
define PORTS = { 22, 80-90,
   443 }
table inet filter {
	set trusted {
		type ipv4_addr
		flags interval
		elements = { 10.9.0.0/16, 192.168.1.1,
			192.168.2.5-192.168.2.9 }
	}
	chain input {
		type filter hook input priority filter + 5; policy drop;
		ct state vmap { invalid : drop, established : accept, related : accept }
		iif "lo" accept
		iifname "eth*" ip saddr $LAN tcp dport $PORTS accept comment "administrators"
		ip saddr @trusted counter accept
		tcp dport ssh accept
		udp dport 53 accept
		ip6 saddr fe80::/10 accept
		meta l4proto { tcp, udp } th dport 111 drop
		tcp flags & (fin|syn|rst|ack) == syn jump later
		ct state new tcp dport != 9000 reject
		ip daddr 10.0.0.1 tcp sport 1024-65535 tcp dport { 5000, 6000-6010 } drop
		fib daddr type local accept
		meta mark 0x1 return
		goto later
	}
	chain later {
		drop
	}
	chain out {
		type filter hook output priority 0; policy accept;
		oifname "eth0" ip daddr != 10.0.0.0/8 drop;
	}
}
add rule inet filter later tcp dport 7 accept
insert rule inet filter later ip protocol icmp accept
add element inet filter trusted { 10.77.0.1 }
"""


def nothing(pattern: str) -> list[str]:
    raise NotReadError(pattern)


def plain(statement: dict[str, object]) -> dict[str, object]:
    """Return a statement without how it refuses: packets are lost in any case."""
    return {"reject": None} if "reject" in statement else statement


def shape(ruleset: NftRuleset) -> dict[str, object]:
    """Return what counts of a ruleset: its chains, and their rules without counters and handles."""
    return {
        f"{c.family} {c.table} {c.name}": (
            c.hook,
            c.priority,
            c.policy,
            [(rule.comment, [plain(x) for x in json.loads(rule.expression)]) for rule in c.rules],
        )
        for c in ruleset.chains
    }


@pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed")
def test_a_configuration_is_read_as_nft_reads_it(tmp_path: Path) -> None:
    conf = tmp_path / "nft.conf"
    conf.write_text(CONFIG)
    load = f"nft -f {conf} && nft -j -s list ruleset"
    done = subprocess.run(["unshare", "--net", "sh", "-c", load], capture_output=True, check=False)
    if done.returncode != 0 and b"syntax" not in done.stderr:
        pytest.skip("no network namespace, or no nftables in this kernel")
    assert done.returncode == 0, done.stderr.decode()
    sections = Sections({"nft": Section(done.stdout, "ok", "", 0, 0)}, complete=True)
    real = parse_firewalls(sections, None).nft
    assert isinstance(real, NftRuleset), real
    assert shape(read_config(CONFIG, nothing)) == shape(real)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("tcp dport . ip saddr { 22 . 10.0.0.2 } accept", ["unread", "accept"]),
        ("socket transparent 1 jump later", ["unread", "jump"]),
        ('accept comment "drop"', ["accept"]),
        ("limit rate 5/second burst 10 packets accept", ["limit", "accept"]),
        ("limit rate over 5/second drop", ["limit", "drop"]),
        ("ct count over 20 drop", ["unread", "drop"]),
        ('log prefix "drop: " group 3 counter packets 3 bytes 9 drop', ["log", "counter", "drop"]),
        ("reject with icmp type host-prohibited", ["reject"]),
        ("reject with tcp reset", ["reject"]),
        ("meta mark set 0x1 accept", ["mangle", "accept"]),
        ("tcp dport {22,80} vmap @there", ["match", "unread"]),
        ("masquerade random", ["masquerade"]),
    ],
)
def test_statements_that_are_not_understood_keep_their_verdict(
    rule: str, expected: list[str]
) -> None:
    text = f"table inet t {{\n chain c {{\n type filter hook input priority 0;\n {rule}\n }}\n}}\n"
    (chain,) = read_config(text, nothing).chains
    (only,) = chain.rules
    assert [next(iter(statement)) for statement in json.loads(only.expression)] == expected


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("delete table inet t", 0),
        ("destroy table inet t", 0),
        ("flush chain inet t c", 0),
        ("flush table inet t", 0),
        ("flush ruleset", 0),
        ("list ruleset", 1),
    ],
)
def test_what_is_taken_away_again_is_gone(text: str, rules: int) -> None:
    begin = "table inet t {\n chain c {\n type filter hook input priority 0\n drop\n }\n}\n"
    ruleset = read_config(f"{begin}{text}\n", nothing)
    assert sum(len(chain.rules) for chain in ruleset.chains) == rules


@pytest.mark.parametrize(
    "text",
    [
        "add rule inet t c handle 4 drop",
        "tcp dport $NOWHERE accept",
        'include "/etc/a.nft"',
        'table inet t {\n include "/etc/a.nft"\n}',
        "define X\n",
        "table inet t {\n chain c {\n drop\n",
        "delete rule inet t c handle 3",
    ],
)
def test_what_cannot_be_followed_is_refused(text: str) -> None:
    with pytest.raises(NotReadError):
        read_config(
            f"table inet t {{\n chain c {{\n {text}\n}}\n}}\n" if text.startswith("tcp") else text,
            nothing,
        )


def test_a_file_that_includes_itself_ends() -> None:
    def itself(pattern: str) -> list[str]:
        return [f'include "{pattern}"\n']

    with pytest.raises(NotReadError, match="include one another"):
        read_config('include "a"\n', itself)
