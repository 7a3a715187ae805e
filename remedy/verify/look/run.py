"""Looking at a few hosts closely, before and after something that fails on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remedy.verify.hosts import Participant
from remedy.verify.look.compare import HostView, compare
from remedy.verify.look.reading import SECONDS, Look, new_nonce, read, script
from remedy.verify.scripts import Run, run_texts

MOST = 16  # hosts that one look compares: more of them are no close look


class CloseLook:
    """Two looks at each host, and what happened between them.

    Args:
        run: runs scripts on hosts.
        hosts: to look at.
        names: what stands for a host in a text (its name, its addresses), each with the host.
    """

    def __init__(self, run: Run, hosts: Sequence[Participant], names: Mapping[str, str]) -> None:
        self.run = run
        self.hosts = hosts
        self.names = names
        self.before = self._look(again=False)

    def views(self) -> tuple[HostView, ...]:
        """Look again, and return what moved, what is said, and what differs."""
        after = {look.host: look for look in self._look(again=True)}
        return compare(self.before, after, self.names)

    def _look(self, *, again: bool) -> tuple[Look, ...]:
        nonce = new_nonce()
        texts = {}
        for host in self.hosts:
            peers = [other.address for other in self.hosts if other.name != host.name]
            text = script(nonce, host.address, peers, host.python or "", again=again)
            texts[host.name] = (text, SECONDS)
        outputs = run_texts(self.run, texts)
        return tuple(read(host.name, nonce, outputs.get(host.name)) for host in self.hosts)
