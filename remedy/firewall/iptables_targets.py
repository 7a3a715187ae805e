"""The targets of rules of iptables, and what their options do. Pure. Source: iptables-extensions(8)."""

from __future__ import annotations

from remedy.firewall.iptables_options import OPTIONS
from remedy.firewall.packets import FEWEST_HOPS, Condition
from remedy.firewall.spans import Spans

TERMINAL = {
    "ACCEPT": "accept",
    "DROP": "drop",
    "REJECT": "drop",
    "RETURN": "return",
    "CONTINUE": "pass",
    **dict.fromkeys(("TARPIT", "STEAL", "DELUDE", "CHAOS"), "drop"),
    **dict.fromkeys(("SNAT", "MASQUERADE"), "accept"),
    **dict.fromkeys(("DNAT", "REDIRECT", "NETMAP", "SAME", "BALANCE"), "divert"),
}
HARMLESS = frozenset(
    {"LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "CT", "MARK", "CONNMARK", "TCPMSS", "NOTRACK", "SET"}
    | {
        "CLASSIFY",
        "DSCP",
        "TOS",
        "ECN",
        "SECMARK",
        "CONNSECMARK",
        "HMARK",
        "IDLETIMER",
    }
    | {"LED", "RATEEST", "TCPOPTSTRIP", "TEE", "CHECKSUM"}
)
REWRITES = frozenset({"TTL", "HL", "mangle"})
"""Where packets go on with other hops, or questions of ARP with other addresses: they need not arrive."""

BY_PROGRAM = frozenset({"QUEUE", "NFQUEUE", "TPROXY", "SYNPROXY"})
"""Where a program, or a part of the kernel with settings of its own, decides."""


def keeps_hops(option: str, value: str) -> bool:
    """Return whether packets have enough hops left behind a target TTL or HL."""
    if option in ("--ttl-set", "--hl-set"):
        return value.isdecimal() and int(value) >= FEWEST_HOPS
    return option in ("--ttl-inc", "--hl-inc")


def source_of(value: str) -> Spans:
    """Return the addresses of ``--to-source``; () where they are not of IPv4."""
    first, _, last = value.partition(":")[0].partition("-")
    try:
        read = OPTIONS["--src-range"]([f"{first}-{last or first}"], False)
    except ValueError:
        return ()
    return read.values if isinstance(read, Condition) and isinstance(read.values, tuple) else ()
